# A service in C++: two workers, a context each, over the same weights. docs/server.md, docs/abi.md.
set -eu
ingot compile examples/digits/digits.onnx -o out --name digits
make -s -C out
cat > service.cpp <<'END'
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>
#include "digits.h"
static void worker(int seed, int *best)
{
    static thread_local digits_ctx ctx;
    digits_config config = {};
    config.struct_size = sizeof config;
    config.arena_bytes = DIGITS_ARENA_BYTES(1);
    config.arena = aligned_alloc(DIGITS_ARENA_ALIGN, (config.arena_bytes + 63) / 64 * 64);
    float image[64], scores[10];
    for (int i = 0; i < 64; i++)
        image[i] = (float)((i * 7 + seed) % 17);
    digits_inputs in = {image};
    digits_outputs out = {scores};
    if (digits_init(&ctx, &config) != IGRT_OK || digits_run(&ctx, &in, &out) != IGRT_OK)
        std::exit(1);
    for (int i = *best = 0; i < 10; i++)
        *best = scores[i] > scores[*best] ? i : *best;
    std::free(config.arena);
}
int main()
{
    int best[2];
    std::vector<std::thread> all;
    for (int i = 0; i < 2; i++)
        all.emplace_back(worker, i, &best[i]);
    for (auto &t : all) t.join();
    std::printf("%d %d\n", best[0], best[1]);
}
END
c++ -O2 -Iout -o service service.cpp out/libdigits.a -pthread -lm
./service
