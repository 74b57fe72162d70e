"""Names that C, C++, their libraries and tools have already."""

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words of C99 and C11, and of C++, from which the header may be included.
_C = """
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while _Bool _Complex _Imaginary _Alignas _Alignof _Atomic _Generic
    _Noreturn _Static_assert _Thread_local asm bool true false nullptr alignas alignof thread_local
    static_assert constexpr typeof typeof_unqual
"""
_CPP = """
    and and_eq bitand bitor catch char16_t char32_t char8_t class compl concept const_cast
    consteval constinit co_await co_return co_yield decltype delete dynamic_cast explicit export
    friend mutable namespace new noexcept not not_eq operator or or_eq private protected public
    reinterpret_cast requires static_cast template this throw try typeid typename using virtual
    wchar_t xor xor_eq
"""
# What generated functions use themselves.
_USED = """
    s in out state why shape memcpy memset memcmp size_t ptrdiff_t offsetof isnan isinf isfinite signbit
    fpclassify assert main open close mmap munmap stat fstat environ
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t
    intmax_t uintmax_t
"""
# Object-like macros: of standard headers (ISO C, POSIX, glibc, newlib), which no pattern below has.
_STANDARD_MACROS = """
    BIG_ENDIAN BUFSIZ BYTE_ORDER CHAR_BIT CLOCKS_PER_SEC FD_SETSIZE HUGE HUGE_VAL I INFINITY ITIMER_PROF
    ITIMER_REAL ITIMER_VIRTUAL LITTLE_ENDIAN LONG_BIT MATH_ERREXCEPT MATH_ERRNO MAXFLOAT MAX_CANON MAX_INPUT
    MINSIGSTKSZ NAN NFDBITS NGREG NSIG NULL NZERO PDP_ENDIAN PIPE_BUF P_tmpdir TIME_UTC TSS_DTOR_ITERATIONS
    WEOF WORD_BIT WCONTINUED WEXITED WNOHANG WNOWAIT WSTOPPED WUNTRACED DOMAIN SING OVERFLOW UNDERFLOW PLOSS
    TLOSS errno complex imaginary linux unix i386 math_errhandling noreturn quad signgam strtodf basename
    tzname fd_set physadr sa_handler sa_sigaction sa_restorer st_atime st_mtime st_ctime s6_addr h_addr
    d_fileno sigcontext_struct stdin stdout stderr
"""
# Object-like macros of old and of embedded compilers, of windows.h and of Arduino.
_OTHER_MACROS = """
    near far huge interrupt cdecl pascal small hyper interface IN OUT OPTIONAL TRUE FALSE CONST VOID DELETE
    STRICT HIGH LOW INPUT OUTPUT PI arm mips sparc sun vax vms
"""
_MACRO_PATTERNS = re.compile(
    r"[A-Z][A-Z0-9_]*_(MAX|MIN|WIDTH|C|DIG|EXP|EPSILON|FREE|INIT|FILENO|MAGIC|MAGIC\d|SUBNORM|PRIO)"
    r"|E[A-Z0-9]+|EXIT_\w+|EXTRA_\w+|ELF_\w+|ESR_\w+"  # errno.h, stdlib.h
    r"|SIG[A-Z0-9_]+|(SA|SI|SS|SV|BUS|CLD|FPE|ILL|POLL|SEGV|TRAP|FPSIMD|SVE|ZA|REG)_[A-Z0-9_]+"  # signal.h
    r"|M_\w+|(FE|FP|LC|SNAN|FLT|DBL|LDBL|DEC\d+)_[A-Z0-9_]+|HUGE_VAL_?[FL][0-9X]*|SNANX?[FL]?|SNANF\d+X?"
    r"|(PRI|SCN)[a-zX]\w+|L_\w+|SEEK_\w+|TMP_\w+|[FRWX]_(OK|TEST|LOCK|TLOCK|ULOCK)"  # inttypes.h, stdio.h, unistd.h
    r"|(CLOCK|CLK|PTHREAD|SCHED|HAVE|TIMER|ADJ|MOD|STA|ATOMIC|MB|RENAME|NL|CLOSE_RANGE|ADDR|AIO)_[A-Z0-9_]+"
    r"|si_[a-z_]+|sigev_notify_[a-z]+"  # members of structures of POSIX
)
WORDS = _words(_C + _CPP + _USED)
MACROS = _words(_STANDARD_MACROS + _OTHER_MACROS)

# What functions of ISO C and POSIX begin with: `sem_open`, `atomic_init`.
FAMILIES = _words("""
    aio atomic cnd dbm iconv lio mq mtx nl obstack posix pthread sched sem shm thrd tss uc va
""")
# Functions of ISO C and POSIX that have an underscore and belong to no family.
FUNCTIONS = _words("""
    call_once quick_exit at_quick_exit aligned_alloc kill_dependency static_assert on_exit get_avphys_pages
    asctime_r ctime_r gmtime_r localtime_r rand_r readdir_r strerror_r strtok_r ttyname_r getlogin_r lgamma_r
    lgammaf_r lgammal_r drand48_r erand48_r lrand48_r nrand48_r mrand48_r jrand48_r srand48_r seed48_r
    lcong48_r random_r srandom_r initstate_r setstate_r ecvt_r fcvt_r qecvt_r qfcvt_r hcreate_r hdestroy_r
    hsearch_r clearerr_unlocked feof_unlocked ferror_unlocked fflush_unlocked fgetc_unlocked fgets_unlocked
    fileno_unlocked fputc_unlocked fputs_unlocked fread_unlocked fwrite_unlocked getc_unlocked
    getchar_unlocked getwc_unlocked getwchar_unlocked putc_unlocked putchar_unlocked putwc_unlocked
    putwchar_unlocked fgetwc_unlocked fgetws_unlocked fputwc_unlocked fputws_unlocked open_memstream
    open_wmemstream explicit_bzero canonicalize_file_name get_current_dir_name group_member clock_getres
    clock_gettime clock_settime clock_nanosleep clock_getcpuclockid clock_adjtime timer_create timer_delete
    timer_settime timer_gettime timer_getoverrun timespec_get timespec_getres
""")
LOCALE_FUNCTION = re.compile(r"(is|to|str|wc)[a-z0-9]*_l")

# Headers by name without `.h`: of ISO C and POSIX, and what libraries and compilers include themselves.
HEADERS = _words("""
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg
    stdatomic stdbit stdbool stdckdint stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar
    wchar wctype aio cpio dirent dlfcn endian fcntl fmtmsg fnmatch ftw getopt glob grp iconv langinfo libgen
    libintl monetary mqueue ndbm netdb nl_types poll pthread pwd regex sched search semaphore spawn strings
    stropts syslog tar termios trace ulimit unistd utime utmpx wait wordexp alloca byteswap devctl elf envlock
    err error execinfo features fts gcov getopt_core ieeefp link malloc memory newlib obstack omp paths
    picolibc printf quadmath reent regdef resolv stdfix stdio_ext syscall syslimits ttyent ucontext unwind
    utmp values varargs newlib_version ansi syslist stdc_predef features_time64 fastmath cpuid mm_malloc
    mm3dnow arm_neon arm_mve arm_acle arm_sve arm_fp16 arm_bf16 altivec riscv_vector wasm_simd128 arm_cmse
    arm_cde cet conio crtdefs corecrt direct excpt io process sal vcruntime windows windef winnt winbase
""")
HEADER_PATTERN = re.compile(r"[a-z0-9]*intrin")

# Libraries and targets of build systems: `libm.so` or a CMake target `test` would be taken for another.
TOOLS = _words("""
    c m dl rt gcc gcc_s util crypt resolv nsl atomic gomp asan tsan ubsan stdc supc all clean help install
    test package edit_cache rebuild_cache stack uninstall depend preinstall
""")


def is_macro(name: str) -> bool:
    """The name is, or may be, an object-like macro of a header that a program includes too."""
    return name in MACROS or _MACRO_PATTERNS.fullmatch(name) is not None


def is_function(name: str) -> bool:
    """The name, which has an underscore, belongs to a library of C."""
    family, _, rest = name.partition("_")
    known = name in FUNCTIONS or LOCALE_FUNCTION.fullmatch(name) is not None
    return known or name.endswith("_t") or (family in FAMILIES and bool(rest))


def is_header(name: str) -> bool:
    """`<name.h>` is a header of C, its libraries or compilers, whatever the case of letters."""
    low = name.lower()
    return low in HEADERS or HEADER_PATTERN.fullmatch(low) is not None
