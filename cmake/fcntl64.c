/* fcntl64.c - what a static SQLite from a newer C library calls, for one that lacks it: glibc has
 * fcntl64() since 2.28, and fcntl() takes the same commands. cmake/wheel.sh links this. */
#include <fcntl.h>
#include <stdarg.h>

int fcntl64(int file, int command, ...);

int fcntl64(int file, int command, ...)
{
    va_list more;
    va_start(more, command);
    void *argument = va_arg(more, void *);
    va_end(more);
    return fcntl(file, command, argument);
}
