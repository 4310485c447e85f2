/* nvrtc_stub.c - a libnvrtc.so that compiles nothing: what a bundle's writer does with what a
 * compiler says. $NVRTC_STUB_FAIL is what a source must not have: of one that has it the log says
 * so; one that has $NVRTC_STUB_CRASH ends the process. Any other becomes an image of a few
 * bytes. */
#include <stdlib.h>
#include <string.h>

typedef struct {
    int bad;
} StubProgram;

static const char image[] = "image", fault[] = "error: the stub does not take this kernel";

static int give(const char *text, char *out)
{
    strcpy(out, text);
    return 0;
}

int nvrtcVersion(int *major, int *minor)
{
    *major = 13, *minor = 0;
    return 0;
}

int nvrtcGetNumSupportedArchs(int *n)
{
    *n = 1;
    return 0;
}

int nvrtcGetSupportedArchs(int *list)
{
    list[0] = 75;
    return 0;
}

int nvrtcCreateProgram(void **program, const char *source, const char *name, int n,
                       const char *const *headers, const char *const *names)
{
    const char *fail = getenv("NVRTC_STUB_FAIL"), *crash = getenv("NVRTC_STUB_CRASH");
    StubProgram *p = malloc(sizeof *p);
    (void)name, (void)n, (void)headers, (void)names;
    *program = p;
    if (!p)
        return 1;
    if (crash && strstr(source, crash))
        abort();
    p->bad = fail && strstr(source, fail);
    return 0;
}

int nvrtcCompileProgram(void *program, int n, const char *const *options)
{
    (void)n, (void)options;
    return ((StubProgram *)program)->bad ? 6 : 0;
}

int nvrtcGetProgramLogSize(void *program, size_t *bytes)
{
    (void)program;
    *bytes = sizeof fault;
    return 0;
}

int nvrtcGetProgramLog(void *program, char *text)
{
    (void)program;
    return give(fault, text);
}

int nvrtcGetPTXSize(void *program, size_t *bytes)
{
    (void)program;
    *bytes = sizeof image;
    return 0;
}

int nvrtcGetPTX(void *program, char *text)
{
    (void)program;
    return give(image, text);
}

int nvrtcGetCUBINSize(void *program, size_t *bytes)
{
    return nvrtcGetPTXSize(program, bytes);
}

int nvrtcGetCUBIN(void *program, char *text)
{
    return nvrtcGetPTX(program, text);
}

int nvrtcDestroyProgram(void **program)
{
    free(*program);
    return 0;
}
