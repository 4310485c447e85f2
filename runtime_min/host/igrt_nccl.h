/*
 * igrt_nccl.h - a communicator for config.comm that is NCCL's, for bundles for CUDA.
 *
 *     igrt_nccl nccl;
 *     if (igrt_nccl_torchrun(&nccl, 0))              rank and size as torchrun has them
 *         fprintf(stderr, "%s\n", nccl.why);
 *     config.comm = &nccl.comm;
 *     config.gpu = nccl.gpu;                         a GPU for each process of a host
 *     if (!model_init(&ctx, &config))
 *         ...
 *     model_deinit(&ctx);
 *     igrt_nccl_end(&nccl);
 *
 * Not part of the bundle's library. NCCL is opened when the program runs (libnccl.so.2, or the file
 * of INGOT_NCCL): no header and no library of it is needed to compile. A process has one GPU, and
 * each GPU one process.
 *
 * The first process makes an id, which the others need to find it. Three ways bring it to them:
 *
 *     igrt_nccl_torchrun(&n, 0)                 RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and
 *                                               MASTER_PORT of the environment: by a connection to
 *                                               the first process, at the port behind torchrun's
 *     igrt_nccl_file(&n, rank, size, "id")      by a file that all of them can read, which was not
 *                                               there before
 *     igrt_nccl_make_id(&n, id)                 by the caller: for example MPI_Bcast(id, sizeof id,
 *     igrt_nccl_begin(&n, rank, size, id, gpu)  MPI_BYTE, 0, MPI_COMM_WORLD) between the two
 *
 * All give 0, or not 0 with the reason in n.why. igrt_nccl_begin() waits for all processes.
 *
 * Sums have the same bits in all processes. In which order NCCL adds, it decides by the GPUs and
 * how they are connected, so that another machine may give other roundings; NCCL_ALGO and
 * NCCL_PROTO choose. Objects of multicast (NVLS) are not used unless NCCL_NVLS_ENABLE says so.
 */
#ifndef IGRT_NCCL_H
#define IGRT_NCCL_H

#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "igrt.h"

/* From nccl.h, which the version says where it has changed. */
enum { IGRT_NCCL_SUM = 0, IGRT_NCCL_AVG = 4, IGRT_NCCL_AVG_SINCE = 21000 };

typedef struct igrt_nccl_id {
    char bytes[128];
} igrt_nccl_id;

typedef struct igrt_nccl {
    igrt_comm comm;
    char gpu[16];     /* for config.gpu */
    const char *why;  /* what failed */
    void *nccl, *lib; /* ncclComm_t */
    int (*version)(int *);
    int (*make_id)(igrt_nccl_id *);
    int (*init)(void **, int, igrt_nccl_id, int);
    int (*all_reduce)(const void *, void *, size_t, int, int, void *, void *);
    int (*destroy)(void *);
    const char *(*text)(int);
} igrt_nccl;

static inline int igrt_nccl_fails(igrt_nccl *n, const char *why)
{
    n->why = why;
    return 1;
}

/* ncclDataType_t; -1: NCCL has no such type. */
static inline int igrt_nccl_type(igrt_dtype dtype)
{
    switch ((int)dtype) {
    case IGRT_I8: return 0;
    case IGRT_U8: return 1;
    case IGRT_I32: return 2;
    case IGRT_U32: return 3;
    case IGRT_I64: return 4;
    case IGRT_U64: return 5;
    case IGRT_F16: return 6;
    case IGRT_F32: return 7;
    case IGRT_F64: return 8;
    case IGRT_BF16: return 9;
    default: return -1;
    }
}

/* igrt_comm.all_reduce_in. */
static inline int igrt_nccl_all_reduce(void *user, void *data, size_t count, igrt_dtype dtype,
                                       int mean, void *stream)
{
    igrt_nccl *n = (igrt_nccl *)user;
    const int type = igrt_nccl_type(dtype);
    if (type < 0)
        return igrt_nccl_fails(n, "NCCL has no such type");
    const int e = n->all_reduce(data, data, count, type, mean ? IGRT_NCCL_AVG : IGRT_NCCL_SUM,
                                n->nccl, stream);
    return e ? igrt_nccl_fails(n, n->text(e)) : 0;
}

static inline int igrt_nccl_find(igrt_nccl *n)
{
    int version = 0;
    const struct {
        void *to;
        const char *name;
    } needed[] = {{&n->version, "ncclGetVersion"},  {&n->make_id, "ncclGetUniqueId"},
                  {&n->init, "ncclCommInitRank"},   {&n->all_reduce, "ncclAllReduce"},
                  {&n->destroy, "ncclCommDestroy"}, {&n->text, "ncclGetErrorString"}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        void *function = dlsym(n->lib, needed[i].name);
        if (!function)
            return igrt_nccl_fails(n, "the library that was opened is not NCCL");
        memcpy(needed[i].to, &function, sizeof function);
    }
    if (n->version(&version) || version < IGRT_NCCL_AVG_SINCE)
        return igrt_nccl_fails(n, "NCCL 2.10 or later is needed");
    return 0;
}

/* Opens the library; what igrt_nccl_make_id() and igrt_nccl_begin() do first. */
static inline int igrt_nccl_open(igrt_nccl *n)
{
    const char *file = getenv("INGOT_NCCL");
    if (n->lib)
        return 0;
    setenv("NCCL_NVLS_ENABLE", "0", 0);
    n->lib = dlopen(file ? file : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!n->lib)
        return igrt_nccl_fails(n, "libnccl.so.2 cannot be opened: install NCCL, or set INGOT_NCCL "
                                  "to its file");
    if (!igrt_nccl_find(n))
        return 0;
    dlclose(n->lib);
    n->lib = NULL;
    return 1;
}

/* For the first process. Clear *n with memset or `= {0}` before. */
static inline int igrt_nccl_make_id(igrt_nccl *n, igrt_nccl_id *id)
{
    if (igrt_nccl_open(n))
        return 1;
    const int e = n->make_id(id);
    return e ? igrt_nccl_fails(n, n->text(e)) : 0;
}

/* cuInit(), cuDevicePrimaryCtxRetain() and cuCtxSetCurrent() of this GPU: where NCCL, and the
 * bundle by config.gpu, find it. */
static inline int igrt_nccl_use(igrt_nccl *n, int gpu)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *context = NULL;
    int (*init)(unsigned), (*device)(int *, int), (*retain)(void **, int), (*current)(void *);
    const struct {
        void *to;
        const char *name;
    } needed[] = {{&init, "cuInit"},
                  {&device, "cuDeviceGet"},
                  {&retain, "cuDevicePrimaryCtxRetain"},
                  {&current, "cuCtxSetCurrent"}};
    int number = 0;
    if (!cuda)
        return igrt_nccl_fails(n, "libcuda.so.1, the driver of NVIDIA's GPUs, cannot be opened");
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        void *function = dlsym(cuda, needed[i].name);
        if (!function)
            return igrt_nccl_fails(n, "libcuda.so.1 lacks a function");
        memcpy(needed[i].to, &function, sizeof function);
    }
    if (init(0) || device(&number, gpu) || retain(&context, number) || current(context))
        return igrt_nccl_fails(n, "there is no such GPU: each process needs one of its own");
    snprintf(n->gpu, sizeof n->gpu, "%d", gpu);
    return 0;
}

/* All processes call it: rank from 0 to size - 1, with the first one's id, and the number of its
 * GPU, as config.gpu has it. */
static inline int igrt_nccl_begin(igrt_nccl *n, int rank, int size, const igrt_nccl_id *id, int gpu)
{
    if (rank < 0 || rank >= size)
        return igrt_nccl_fails(n, "a rank is from 0 to the number of processes - 1");
    if (igrt_nccl_open(n) || igrt_nccl_use(n, gpu))
        return 1;
    const int e = n->init(&n->nccl, size, *id, rank);
    if (e)
        return igrt_nccl_fails(n, n->text(e));
    n->comm.rank = rank;
    n->comm.size = size;
    n->comm.user = n;
    n->comm.all_reduce_in = igrt_nccl_all_reduce;
    return 0;
}

/* Frees what the communicator has, behind model_deinit(). */
static inline void igrt_nccl_end(igrt_nccl *n)
{
    if (n->nccl)
        n->destroy(n->nccl);
    n->nccl = NULL;
    memset(&n->comm, 0, sizeof n->comm);
}

static inline void igrt_nccl_rest(void)
{
    const struct timespec rest = {0, 20000000};
    nanosleep(&rest, NULL);
}

enum { IGRT_NCCL_TRIES = 3000 }; /* a minute */

/* The id by a file: the first process writes it beside, and renames it. It removes the file when
 * all have read it, for they have met then. */
static inline int igrt_nccl_file(igrt_nccl *n, int rank, int size, const char *path, int gpu)
{
    igrt_nccl_id id;
    char part[4096];
    FILE *f = NULL;
    memset(n, 0, sizeof *n);
    if (!rank) {
        if ((f = fopen(path, "rb"))) {
            fclose(f);
            return igrt_nccl_fails(n, "the file of the id is there already, of another run: remove "
                                      "it, or name another file");
        }
        if (igrt_nccl_make_id(n, &id))
            return 1;
        if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part ||
            !(f = fopen(part, "wb")))
            return igrt_nccl_fails(n, "the file of the id cannot be written");
        const size_t written = fwrite(&id, 1, sizeof id, f);
        if (fclose(f) || written != sizeof id || rename(part, path))
            return igrt_nccl_fails(n, "the file of the id cannot be written");
    } else {
        for (int i = 0; i < IGRT_NCCL_TRIES && !(f = fopen(path, "rb")); i++)
            igrt_nccl_rest();
        if (!f)
            return igrt_nccl_fails(n, "the first process has not written the file of the id");
        const size_t read = fread(&id, 1, sizeof id, f);
        fclose(f);
        if (read != sizeof id)
            return igrt_nccl_fails(n, "the file of the id is not of this run");
    }
    const int failed = igrt_nccl_begin(n, rank, size, &id, gpu);
    if (!rank)
        remove(path);
    return failed;
}

static inline int igrt_nccl_all(int socket, char *data, size_t bytes, int sends)
{
    while (bytes) {
        const ssize_t done =
            sends ? send(socket, data, bytes, MSG_NOSIGNAL) : recv(socket, data, bytes, 0);
        if (done <= 0)
            return 1;
        data += done;
        bytes -= (size_t)done;
    }
    return 0;
}

/* Of these addresses; one of IPv6, which has IPv4 too, before the others. -1: none is free. */
static inline int igrt_nccl_listen(const struct addrinfo *at, int size)
{
    const int yes = 1, no = 0;
    for (int six = 1; six >= 0; six--)
        for (const struct addrinfo *a = at; a; a = a->ai_next) {
            const int s = (a->ai_family == AF_INET6) == six
                              ? socket(a->ai_family, a->ai_socktype, a->ai_protocol)
                              : -1;
            if (s < 0)
                continue;
            (void)setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
            if (six)
                (void)setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
            if (!bind(s, a->ai_addr, a->ai_addrlen) && !listen(s, size))
                return s;
            close(s);
        }
    return -1;
}

/* The first process gives the id to each that connects; the others connect until it answers. */
static inline int igrt_nccl_meet(const char *host, const char *port, int rank, int size,
                                 igrt_nccl_id *id)
{
    struct addrinfo hints, *at = NULL;
    int failed = 1;
    memset(&hints, 0, sizeof hints);
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = rank ? 0 : AI_PASSIVE;
    if (getaddrinfo(rank ? host : NULL, port, &hints, &at))
        return 1;
    for (int i = 0; i < IGRT_NCCL_TRIES && failed && rank; i++) {
        for (const struct addrinfo *a = at; a && failed; a = a->ai_next) {
            const int s = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
            if (s >= 0 && !connect(s, a->ai_addr, a->ai_addrlen))
                failed = igrt_nccl_all(s, id->bytes, sizeof id->bytes, 0);
            if (s >= 0)
                close(s);
        }
        if (failed)
            igrt_nccl_rest();
    }
    const int s = rank ? -1 : igrt_nccl_listen(at, size);
    failed = rank ? failed : s < 0;
    for (int given = 1; given < size && !failed && !rank;) {
        const int other = accept(s, NULL, NULL);
        failed = other < 0;
        if (!failed) {
            given += !igrt_nccl_all(other, id->bytes, sizeof id->bytes, 1);
            close(other);
        }
    }
    if (s >= 0)
        close(s);
    freeaddrinfo(at);
    return failed;
}

/* Rank, size, GPU and the first process's address by the environment that torchrun makes. port: 0,
 * or where the first process listens, where that is not the one behind MASTER_PORT. */
static inline int igrt_nccl_torchrun(igrt_nccl *n, int port)
{
    const char *rank = getenv("RANK"), *size = getenv("WORLD_SIZE"), *own = getenv("LOCAL_RANK"),
               *host = getenv("MASTER_ADDR"), *master = getenv("MASTER_PORT");
    igrt_nccl_id id;
    char number[16];
    memset(n, 0, sizeof *n);
    memset(&id, 0, sizeof id);
    if (!rank || !size || !host || (!master && !port))
        return igrt_nccl_fails(n, "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are not all set: "
                                  "start the processes with torchrun --no-python");
    snprintf(number, sizeof number, "%d", port ? port : atoi(master) + 1);
    if (!atoi(rank) && igrt_nccl_make_id(n, &id))
        return 1;
    if (igrt_nccl_meet(host, number, atoi(rank), atoi(size), &id))
        return igrt_nccl_fails(n, "the processes cannot connect to the first one: is the port "
                                  "behind MASTER_PORT free?");
    return igrt_nccl_begin(n, atoi(rank), atoi(size), &id, atoi(own ? own : rank));
}

#endif
