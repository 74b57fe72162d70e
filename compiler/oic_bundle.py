"""Puts templates/, runtime_c/ and docs/ into a wheel, as oic/templates and so on.

They lie at the top of the repository, outside the package, so setuptools needs this build step.
An editable install copies nothing: there `oic.resources` finds them in the checkout.
"""

from pathlib import Path

from setuptools.command.build_py import build_py

BUNDLED = ("templates", "runtime_c", "docs")
LEFT_OUT = {".o", ".a", ".so", ".pyc", ".orig", ".swp"}  # what a compiler or an editor leaves there


def bundled_files() -> list[str]:
    """Paths of the files to ship, relative to the repository, where setuptools runs."""
    return sorted(
        path.as_posix()
        for folder in BUNDLED
        for path in Path(folder).rglob("*")
        if path.is_file() and path.suffix not in LEFT_OUT and not path.name.startswith(".")
    )


class BuildPy(build_py):
    """`build_py` that also copies `bundled_files`; the source distribution asks it for them."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for source, target in self._bundle().items():
                self.mkpath(str(Path(target).parent))
                self.copy_file(source, target, preserve_mode=False)

    def get_source_files(self) -> list[str]:
        return [*super().get_source_files(), *bundled_files(), "compiler/oic_bundle.py"]

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        bundle = [] if self.editable_mode else list(self._bundle().values())
        return [*super().get_outputs(include_bytecode), *bundle]

    def _bundle(self) -> dict[str, str]:
        """Every file to ship and where it goes."""
        return {file: str(Path(self.build_lib, "oic", file)) for file in bundled_files()}
