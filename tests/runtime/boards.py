"""A board with a Cortex-M55: how a program for it is compiled, and run by an emulator.  Its start is `board.h`."""

CORTEX_M55 = (
    "arm-none-eabi-gcc", "-mcpu=cortex-m55+nomve.fp", "-mthumb", "-mfloat-abi=hard", "-nostartfiles",
    "-Wl,--section-start=.vectors=0x10000000,-Ttext=0x10000400,-Tdata=0x31000000,-e,0x10000400",
)  # fmt: skip
EMULATOR = ("qemu-system-arm", "-M", "mps3-an547", "-nographic", "-semihosting", "-kernel")
