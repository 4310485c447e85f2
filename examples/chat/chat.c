/*
 * chat.c - a language model as one program: weights, vocabulary and C library are inside.
 *
 *     ./chat                        a line of yours, an answer, and so on
 *     ./chat -t 4 --prompt "..."    one answer, by four threads
 *     ./chat --help                 how tokens are drawn, and more
 *
 * The folder that `ingot compile` has written has all of it already: host/driver_chat.c talks, and
 * is given its options here.  A program with something of its own to do calls the model's functions
 * (docs/llm.md) in its place.
 */
#include "driver.h"

#include <stdio.h>
#include <string.h>

enum { MOST_WORDS = 64 };

int main(int argc, char **argv)
{
    char *words[MOST_WORDS + 5] = {argv[0]}, chat[] = "--chat";
    int n = 1, i = 1;
    if (argc > MOST_WORDS) {
        fprintf(stderr, "%s: too many options\n", argv[0]);
        return IGRT_EXIT_USAGE;
    }
    if (argc > 2 && !strcmp(argv[1], "-t"))
        for (; i < 3; i++)
            words[n++] = argv[i];
    words[n++] = chat; /* what follows it are options of the talk */
    for (; i < argc; i++)
        words[n++] = argv[i];
    igrt_driver_chat = driver_chat;
    return igrt_driver_main(n, words, igrt_bundle.model);
}
