/* Calls of one library that fail when told to: memory (malloc and its kin, operator new, mmap) or the start of threads.
   Preloaded; nothing fails until arm() is called, and never a call that another library makes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { memory = 1, threads = 2 };

static atomic_long asked, first, last;
static atomic_int armed; /* what fails */
static atomic_uintptr_t from, to;

/* Calls number n to n + more - 1 of the kind fail, counted from now on, if they come from addresses in [begin, end). */
void arm(int kind, long n, long more, uintptr_t begin, uintptr_t end) {
    asked = 0;
    first = n;
    last = more > 0 ? n + more - 1 : n;
    from = begin;
    to = end;
    armed = kind;
}

/* How many were asked for. */
long disarm(void) {
    armed = 0;
    return asked;
}

static int fails(int kind, void *caller) {
    if (armed != kind) return 0;
    uintptr_t where = (uintptr_t)caller;
    if (where < from || where >= to) return 0;
    long number = atomic_fetch_add(&asked, 1) + 1;
    return number >= first && number <= last;
}

#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t size) { return fails(memory, CALLER) ? (errno = ENOMEM, NULL) : __libc_malloc(size); }
void *calloc(size_t n, size_t size) { return fails(memory, CALLER) ? (errno = ENOMEM, NULL) : __libc_calloc(n, size); }
void *realloc(void *old, size_t size) {
    return fails(memory, CALLER) ? (errno = ENOMEM, NULL) : __libc_realloc(old, size);
}
void *aligned_alloc(size_t step, size_t size) {
    return fails(memory, CALLER) ? (errno = ENOMEM, NULL) : __libc_memalign(step, size);
}

/* The C++ runtime reports what these cannot get as std::bad_alloc. */
void *_Znwm(size_t size) {
    static void *(*real)(size_t);
    if (!real) real = (void *(*)(size_t))dlsym(RTLD_NEXT, "_Znwm");
    return real(fails(memory, CALLER) ? SIZE_MAX / 2 : size);
}
void *_ZnwmSt11align_val_t(size_t size, size_t step) {
    static void *(*real)(size_t, size_t);
    if (!real) real = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "_ZnwmSt11align_val_t");
    return real(fails(memory, CALLER) ? SIZE_MAX / 2 : size, step);
}

/* Threads are started from inside the C++ runtime, whoever asked for them: all of them count. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *given) {
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real) real = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
    if (armed == threads) {
        long number = atomic_fetch_add(&asked, 1) + 1;
        if (number >= first && number <= last) return EAGAIN;
    }
    return real(thread, attributes, run, given);
}
