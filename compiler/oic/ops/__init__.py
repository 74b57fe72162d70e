"""The operator catalog: one class an operator, one file a family.

Importing this package registers every op.
"""

from oic.ops import arrange as arrange
from oic.ops import attention as attention
from oic.ops import bitwise as bitwise
from oic.ops import cast as cast
from oic.ops import compare as compare
from oic.ops import control as control
from oic.ops import conv as conv
from oic.ops import elementwise as elementwise
from oic.ops import fused as fused
from oic.ops import index as index
from oic.ops import math as math
from oic.ops import matmul as matmul
from oic.ops import norm as norm
from oic.ops import part as part
from oic.ops import position as position
from oic.ops import quant as quant
from oic.ops import recurrent as recurrent
from oic.ops import reduce as reduce
from oic.ops import sampling as sampling
from oic.ops import shape as shape
from oic.ops import state as state
