"""A compiled model against the library that it comes from: `oic verify`.

    report = verify("folder", against="transformers", prompts=[[5, 17, 3]], count=16)

What the original does with a prompt is a `Case`: from the library at hand, or from a file that it wrote before.
"""

from oic.verification.cases import Case, read_cases, write_cases
from oic.verification.outcome import Report, verify

__all__ = ["Case", "Report", "read_cases", "verify", "write_cases"]
