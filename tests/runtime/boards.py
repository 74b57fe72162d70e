"""Boards with a Cortex-M: how a program for one is compiled, and run by an emulator.  Their start is `board.h`."""

CORTEX_M0 = (
    "arm-none-eabi-gcc", "-mcpu=cortex-m0plus", "-mthumb", "-nostartfiles", "-DBOARD_STACK=0x20400000u",
    "-Wl,--section-start=.vectors=0,-Ttext=0x400,-Tdata=0x20000000,-e,0x400",
)  # fmt: skip
EMULATOR_M0 = ("qemu-system-arm", "-M", "mps2-an385", "-nographic", "-semihosting", "-kernel")

CORTEX_M4 = (
    "arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-nostartfiles",
    "-DBOARD_STACK=0x20400000u", "-Wl,--section-start=.vectors=0,-Ttext=0x400,-Tdata=0x20000000,-e,0x400",
)  # fmt: skip
EMULATOR_M4 = ("qemu-system-arm", "-M", "mps2-an386", "-nographic", "-semihosting", "-kernel")

CORTEX_M55 = (
    "arm-none-eabi-gcc", "-mcpu=cortex-m55+nomve.fp", "-mthumb", "-mfloat-abi=hard", "-nostartfiles",
    "-DBOARD_STACK=0x31200000u",
    "-Wl,--section-start=.vectors=0x10000000,-Ttext=0x10000400,-Tdata=0x31000000,-e,0x10000400",
)  # fmt: skip
EMULATOR = ("qemu-system-arm", "-M", "mps3-an547", "-nographic", "-semihosting", "-kernel")
