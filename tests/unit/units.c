/* units.c - the programs of this folder as one: `units NAME_test ARG...`. The compiler has renamed
 * each one's main to NAME_test_main; units.def, which CMake writes, lists them. As main they may or
 * may not take arguments, and are called as the system calls main. */
#include <stdio.h>
#include <string.h>

#define UNIT(name) int name##_main(int argc, char **argv);
#include "units.def"
#undef UNIT

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*main)(int argc, char **argv);
    } all[] = {
#define UNIT(name) {#name, name##_main},
#include "units.def"
#undef UNIT
    };
    for (size_t i = 0; argc > 1 && i < sizeof all / sizeof *all; i++)
        if (!strcmp(argv[1], all[i].name))
            return all[i].main(argc - 1, argv + 1);
    fprintf(stderr, "units: no such test: %s\n", argc > 1 ? argv[1] : "none is named");
    return 2;
}
