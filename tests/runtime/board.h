/* A board with a Cortex-M, whose emulator lets programs print: it starts, calls run(), and stops.  BOARD_STACK is its end of RAM. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

__attribute__((noinline)) static void run(void); /* which may keep registers of units that are off until it is called */

static void board_ask(int what, const void *with)
{
    register int r0 __asm__("r0") = what;
    register const void *r1 __asm__("r1") = with;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void board_print(const char *text) { board_ask(4, text); }

/* `name: 0123456789abcdef` */
static void board_say(const char *name, uint32_t high, uint32_t low)
{
    char text[] = ": 0000000000000000\n";
    for (int i = 0; i < 16; ++i) {
        text[2 + i] = "0123456789abcdef"[(i < 8 ? high >> (28 - 4 * i) : low >> (60 - 4 * i)) & 15u];
    }
    board_print(name);
    board_print(text);
}

static void board_stop(void) { board_ask(0x18, (const void *)0x20026); }

static void board_start(void)
{
    *(volatile uint32_t *)0xe000ed88u |= 0xfu << 20; /* the units of floats and vectors are off */
    __asm__ volatile("dsb\n\tisb" : : : "memory");
    run();
    board_stop();
}

static void board_fault(void)
{
    board_print("fault: the processor refused an instruction\n");
    board_stop();
}

typedef void (*board_handler)(void);
__attribute__((section(".vectors"), used)) static const board_handler board_vectors[] = {
    (board_handler)BOARD_STACK, board_start, board_fault, board_fault, board_fault, board_fault, board_fault,
};

#endif
