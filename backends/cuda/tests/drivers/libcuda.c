/* A CUDA driver for tests: no device, no kernels of its own, but a long memory for mistakes.
 *
 * It is as lazy as the manual allows: work on a stream runs only when somebody waits or asks, so
 * whatever a caller frees or changes too early is caught. It is strict: a call without a current
 * context, memory freed under unfinished work, a module unloaded under it, a leak when the last
 * context goes, all end the process with a message.
 *
 * Switches: EMPTY (no symbols), INIT=n (what cuInit answers), DEVICES=n, NAME=text, MEMORY=bytes,
 * NO_TOTAL (cuDeviceTotalMem fails), NO_UUID2, NO_TEXTS, REFUSE_PTX (only machine code loads),
 * NO_PINNED (host memory cannot be locked). A symbol is hidden by -DcuName=hidden.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef EMPTY
int nothing_of_use(void) { return 0; }
#else

#ifndef INIT
#define INIT 0
#endif
#ifndef DEVICES
#define DEVICES 2
#endif
#ifndef NAME
#define NAME "Strict test device"
#endif
#ifndef MEMORY
#define MEMORY (64u << 20)
#endif

enum { OK = 0, INVALID = 1, OOM = 2, NO_DEVICE = 100, BAD_DEVICE = 101,
       BAD_PTX = 218, PTX_VERSION = 222, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL = 700 };

typedef struct Context { int device, retained, error, streams, modules; size_t used; } Context;
typedef struct Memory { uintptr_t at; size_t bytes; int device; struct Memory *next; } Memory;
typedef struct Event { struct Stream *stream; uint64_t record; double ms; } Event;
typedef struct Module { Context *context; char *text; } Module;
typedef struct Function { Module *module; int kernel; } Function;
typedef enum { COPY, WAIT, RECORD, LAUNCH } What;
typedef struct Op {
    What what;
    void *to, *owned;
    const void *from;
    size_t bytes;
    Event *event;
    struct Stream *on;
    uint64_t record;
    Function *function;
    uint64_t word[4];
    unsigned items;
    struct Op *next;
} Op;
typedef struct Stream { Context *context; Op *first, **last; uint64_t records, reached; struct Stream *next; } Stream;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Context contexts[DEVICES > 0 ? DEVICES : 1];
static Memory *memories;
static Stream *streams;
static int events;
static __thread Context *current;

static void die(const char *what) {
    fprintf(stderr, "strict driver: %s\n", what);
    fflush(NULL);
    abort();
}

#define ENTER pthread_mutex_lock(&lock)
#define LEAVE(code) do { int code_ = (code); pthread_mutex_unlock(&lock); return code_; } while (0)
#define IN_CONTEXT do { ENTER; if (!current) die("a call without a current context"); if (!current->retained) die("a call in a released context"); } while (0)

static Memory *memory_of(const void *at, size_t bytes) {
    for (Memory *m = memories; m; m = m->next)
        if ((uintptr_t)at >= m->at && (uintptr_t)at + bytes <= m->at + m->bytes) return m;
    return NULL;
}

static int overlaps(const Memory *m, const void *at, size_t bytes) {
    return (uintptr_t)at < m->at + m->bytes && m->at < (uintptr_t)at + bytes;
}

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

/* The kernels it knows, by name: fill(u32 *out, u32 value, u32 n), add(const f32 *a, f32 *b,
 * f32 scale, u32 n), crash(). */
static const char *const kernels[] = { "fill", "add", "crash" };

static void run_kernel(Stream *s, Op *op) {
    uint32_t n, i;
    switch (op->function->kernel) {
    case 0: {
        uint32_t *out = (uint32_t *)op->word[0];
        n = (uint32_t)op->word[2];
        if (!memory_of(out, n * 4ull)) { s->context->error = ILLEGAL; return; }
        for (i = 0; i < n && i < op->items; i++) out[i] = (uint32_t)op->word[1];
        break;
    }
    case 1: {
        const float *a = (const float *)op->word[0];
        float *b = (float *)op->word[1], scale;
        memcpy(&scale, &op->word[2], 4);
        n = (uint32_t)op->word[3];
        if (!memory_of(a, n * 4ull) || !memory_of(b, n * 4ull)) { s->context->error = ILLEGAL; return; }
        for (i = 0; i < n && i < op->items; i++) b[i] += scale * a[i];
        break;
    }
    default:
        s->context->error = ILLEGAL;
    }
}

static void run_to(Stream *s, uint64_t record);

/* Runs the oldest work of a stream; 0 when there was none. */
static int step(Stream *s) {
    Op *op = s->first;
    if (!op) return 0;
    if (op->what == WAIT) run_to(op->on, op->record);
    s->first = op->next;
    if (!s->first) s->last = &s->first;
    if (!s->context->error) {
        if (op->what == COPY) memmove(op->to, op->from, op->bytes);
        if (op->what == LAUNCH) run_kernel(s, op);
    }
    if (op->what == RECORD) {
        s->reached = op->record;
        if (op->event->stream == s && op->event->record == op->record) op->event->ms = now_ms();
    }
    free(op->owned);
    free(op);
    return 1;
}

static void run_to(Stream *s, uint64_t record) {
    while (s->reached < record && step(s)) {}
}

static Stream *stream_of(Stream *wanted) {
    for (Stream *s = streams; s; s = s->next) if (s == wanted) return s;
    die("a stream that is not there");
    return NULL;
}

static Op *push(Stream *wanted, What what) {
    Stream *s = stream_of(wanted);
    if (s->context != current) die("a stream of another context");
    Op *op = calloc(1, sizeof *op);
    op->what = what;
    *s->last = op;
    s->last = &op->next;
    return op;
}

int cuInit(unsigned flags) { (void)flags; if (INIT) return INIT; return DEVICES ? OK : NO_DEVICE; }
int cuGetExportTable(const void **table, const void *id) { (void)id; *table = NULL; return INVALID; }
int cuDriverGetVersion(int *version) { *version = 12040; return OK; }
int cuDeviceGetCount(int *count) { *count = DEVICES; return OK; }
int cuDeviceGet(int *device, int ordinal) { if (ordinal < 0 || ordinal >= DEVICES) return BAD_DEVICE; *device = ordinal; return OK; }
int cuDeviceGetName(char *name, int len, int device) { snprintf(name, len, "%s %d", NAME, device); return OK; }
#ifdef NO_TOTAL
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)bytes; return device == 1 ? 999 : (*bytes = MEMORY, OK); }
#else
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = MEMORY; return OK; }
#endif
#ifndef NO_UUID2
int cuDeviceGetUuid_v2(unsigned char *uuid, int device) { memset(uuid, 0x20 + device, 16); return OK; }
#endif
int cuDeviceGetUuid(unsigned char *uuid, int device) { memset(uuid, 0x10 + device, 16); return OK; }
#ifndef NO_TEXTS
int cuGetErrorName(int error, const char **text) { *text = error == 999 ? "CUDA_ERROR_UNKNOWN" : error == ILLEGAL ? "CUDA_ERROR_ILLEGAL_ADDRESS" : error == BAD_PTX ? "CUDA_ERROR_INVALID_PTX" : "CUDA_ERROR_OTHER"; return OK; }
int cuGetErrorString(int error, const char **text) { if (error != 999) return INVALID; *text = "unknown error"; return OK; }
#endif

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
    case 1: case 2: case 3: *value = 1024; return OK;
    case 4: *value = 64; return OK;
    case 5: *value = 0x7fffffff; return OK;
    case 6: case 7: *value = 65535; return OK;
    case 8: *value = 49152; return OK;
    case 16: *value = 46 + device; return OK;
    case 18: *value = device == 1; return OK;
    case 31: *value = 1; return OK;
    case 33: *value = 0x41 + device; return OK;
    case 34: *value = device; return OK;
    case 40: *value = 2; return OK;
    case 50: *value = 0x10000; return OK;
    case 75: *value = 8; return OK;
    case 76: *value = 6; return OK;
    default: return INVALID;
    }
}

int cuDevicePrimaryCtxRetain(Context **context, int device) {
    ENTER;
    Context *c = &contexts[device];
    if (!c->retained++) { c->device = device; c->error = 0; c->used = 0; }
    *context = c;
    LEAVE(OK);
}

int cuDevicePrimaryCtxRelease_v2(int device) {
    ENTER;
    Context *c = &contexts[device];
    if (!c->retained) die("a context released twice");
    if (!--c->retained) {
        if (c->streams) die("a stream leaked");
        if (c->modules) die("a module leaked");
        for (Memory *m = memories; m; m = m->next) if (m->device == device) die("memory leaked");
        int all = 0;
        for (int i = 0; i < DEVICES; i++) all += contexts[i].retained;
        if (!all && events) die("an event leaked");
        if (!all && memories) die("pinned memory leaked");
    }
    LEAVE(OK);
}

int cuCtxSetCurrent(Context *context) { current = context; return OK; }

int cuMemGetInfo_v2(size_t *free, size_t *total) { IN_CONTEXT; *total = MEMORY; *free = MEMORY - current->used; LEAVE(current->error); }

static void *take(size_t bytes, int device) {
    Memory *m = malloc(sizeof *m);
    void *at = aligned_alloc(256, (bytes + 255) / 256 * 256);
    memset(at, 0xA5, bytes);
    *m = (Memory){ (uintptr_t)at, bytes, device, memories };
    memories = m;
    return at;
}

static void give(void *at, int pinned) {
    for (Memory **link = &memories; *link; link = &(*link)->next) {
        Memory *m = *link;
        if (m->at != (uintptr_t)at || pinned != (m->device < 0)) continue;
        for (Stream *s = streams; s; s = s->next)
            for (Op *op = s->first; op; op = op->next) {
                if (op->what == COPY && (overlaps(m, op->to, op->bytes) || overlaps(m, op->from, op->bytes))) die("memory freed under a copy");
                if (op->what == LAUNCH && (overlaps(m, (void *)op->word[0], 1) || overlaps(m, (void *)op->word[1], 1))) die("memory freed under a kernel");
            }
        *link = m->next;
        memset(at, 0xDD, m->bytes);
        free(at);
        free(m);
        return;
    }
    die("memory freed that was not allocated");
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    IN_CONTEXT;
    if (!bytes) LEAVE(INVALID);
    if (current->error) LEAVE(current->error);
    if (current->used + bytes > MEMORY) LEAVE(OOM);
    current->used += bytes;
    *address = (uint64_t)take(bytes, current->device);
    LEAVE(OK);
}

int cuMemFree_v2(uint64_t address) {
    IN_CONTEXT;
    Memory *m = memory_of((void *)address, 1);
    if (!m || m->device != current->device) die("device memory freed in another context");
    current->used -= m->bytes;
    give((void *)address, 0);
    LEAVE(current->error);
}

int cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
    IN_CONTEXT;
    (void)flags;
#ifdef NO_PINNED
    (void)address, (void)bytes;
    LEAVE(OOM);
#else
    *address = take(bytes, -1);
    LEAVE(current->error);
#endif
}

int cuMemFreeHost(void *address) { IN_CONTEXT; give(address, 1); LEAVE(current->error); }

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, Stream *s) {
    IN_CONTEXT;
    if (!memory_of((void *)to, bytes)) die("a copy to outside of device memory");
    Op *op = push(s, COPY);
    op->to = (void *)to, op->from = from, op->bytes = bytes;
    if (!memory_of(from, bytes)) { /* pageable: staged at once */
        op->owned = malloc(bytes);
        op->from = memcpy(op->owned, from, bytes);
    }
    LEAVE(current->error);
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, Stream *s) {
    IN_CONTEXT;
    if (!memory_of((void *)from, bytes)) die("a copy from outside of device memory");
    Op *op = push(s, COPY);
    op->to = to, op->from = (void *)from, op->bytes = bytes;
    if (!memory_of(to, bytes)) while (step(s)) {} /* pageable: returns when done */
    LEAVE(current->error);
}

static int copy_known(uint64_t to, uint64_t from, size_t bytes, Stream *s) {
    if (!memory_of((void *)to, bytes) || !memory_of((void *)from, bytes)) die("a copy outside of known memory");
    Op *op = push(s, COPY);
    op->to = (void *)to, op->from = (void *)from, op->bytes = bytes;
    return current->error;
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Stream *s) { IN_CONTEXT; LEAVE(copy_known(to, from, bytes, s)); }
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, Stream *s) { IN_CONTEXT; LEAVE(copy_known(to, from, bytes, s)); }

int cuStreamCreate(Stream **stream, unsigned flags) {
    IN_CONTEXT;
    if (flags != 1) die("a stream that waits for the default stream");
    if (MEMORY - current->used < 4096) LEAVE(OOM);
    Stream *s = calloc(1, sizeof *s);
    s->context = current, s->last = &s->first, s->next = streams;
    streams = *stream = s;
    current->streams++;
    LEAVE(OK);
}

int cuStreamSynchronize(Stream *s) { IN_CONTEXT; while (step(stream_of(s))) {} LEAVE(s->context->error); }

int cuStreamDestroy_v2(Stream *gone) {
    IN_CONTEXT;
    if (stream_of(gone)->first) die("a stream destroyed under its work");
    for (Stream **link = &streams; *link; link = &(*link)->next)
        if (*link == gone) { *link = gone->next; break; }
    gone->context->streams--;
    /* Kept: events that were recorded on it still point to it. */
    LEAVE(current->error);
}

int cuStreamWaitEvent(Stream *s, Event *e, unsigned flags) {
    IN_CONTEXT;
    (void)flags;
    Op *op = push(s, WAIT);
    op->on = e->stream, op->record = e->record;
    if (!e->stream) die("a wait for an event that was never recorded");
    LEAVE(current->error);
}

int cuEventCreate(Event **event, unsigned flags) {
    IN_CONTEXT;
    if (flags & 2) die("an event without timing");
    *event = calloc(1, sizeof **event);
    events++;
    LEAVE(OK);
}

int cuEventDestroy_v2(Event *e) { IN_CONTEXT; events--; (void)e; /* kept: work may name it */ LEAVE(current->error); }

int cuEventRecord(Event *e, Stream *s) {
    IN_CONTEXT;
    Op *op = push(s, RECORD);
    op->event = e;
    e->stream = s, e->record = op->record = ++s->records;
    LEAVE(current->error);
}

/* Every fourth question brings the stream one step further, so that polling ends, but the device
 * lags behind its host. */
int cuEventQuery(Event *e) {
    IN_CONTEXT;
    static unsigned questions;
    if (!e->stream) LEAVE(OK);
    if (e->stream->reached < e->record && ++questions % 4 == 0) step(e->stream);
    if (e->stream->context->error) LEAVE(e->stream->context->error);
    LEAVE(e->stream->reached < e->record ? NOT_READY : OK);
}

int cuEventSynchronize(Event *e) { IN_CONTEXT; if (e->stream) run_to(e->stream, e->record); LEAVE(current->error); }

int cuEventElapsedTime(float *ms, Event *start, Event *end) {
    IN_CONTEXT;
    if (!start->stream || !end->stream) LEAVE(400);
    if (start->stream->reached < start->record || end->stream->reached < end->record) LEAVE(NOT_READY);
    if (end->ms < start->ms) die("time measured backwards");
    *ms = (float)(end->ms - start->ms);
    LEAVE(current->error);
}

int cuModuleLoadDataEx(Module **module, const void *image, unsigned count, int *options, void **values) {
    IN_CONTEXT;
    const char *text = image;
    if (MEMORY - current->used < 4096) LEAVE(OOM);
    int elf = !memcmp(text, "\177ELF", 4);
#ifdef REFUSE_PTX
    if (!elf) LEAVE(PTX_VERSION);
#endif
    if (!elf && !strstr(text, ".entry")) {
        for (unsigned i = 0; i + 1 < count; i++)
            if (options[i] == 5 && options[i + 1] == 6) snprintf(values[i], (size_t)values[i + 1], "ptxas fatal: no entry");
        LEAVE(BAD_PTX);
    }
    Module *m = calloc(1, sizeof *m);
    m->context = current, m->text = strdup(elf ? ".entry fill .entry add" : text);
    current->modules++;
    *module = m;
    LEAVE(OK);
}

int cuModuleUnload(Module *m) {
    IN_CONTEXT;
    for (Stream *s = streams; s; s = s->next)
        for (Op *op = s->first; op; op = op->next)
            if (op->what == LAUNCH && op->function->module == m) die("a module unloaded under its kernel");
    m->context->modules--;
    free(m->text);
    LEAVE(current->error);
}

int cuModuleGetFunction(Function **function, Module *m, const char *name) {
    IN_CONTEXT;
    char entry[80];
    snprintf(entry, sizeof entry, ".entry %s", name);
    for (int k = 0; k < 3; k++)
        if (!strcmp(name, kernels[k]) && strstr(m->text, entry)) {
            *function = malloc(sizeof **function);
            **function = (Function){ m, k };
            LEAVE(OK);
        }
    LEAVE(NOT_FOUND);
}

int cuFuncGetAttribute(int *value, int attribute, Function *f) { IN_CONTEXT; (void)f; *value = attribute == 0 ? 512 : 0; LEAVE(OK); }

int cuLaunchKernel(Function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, Stream *s, void **params, void **extra) {
    IN_CONTEXT;
    static const int sizes[3][4] = { { 8, 4, 4, 0 }, { 8, 8, 4, 4 }, { 0 } };
    if (shared || extra) die("launch options nobody asked for");
    Op *op = push(s, LAUNCH);
    op->function = f, op->items = gx * gy * gz * bx * by * bz;
    for (int i = 0; i < 4; i++) memcpy(&op->word[i], sizes[f->kernel][i] ? params[i] : &op->word[i], sizes[f->kernel][i]);
    LEAVE(current->error);
}
#endif
