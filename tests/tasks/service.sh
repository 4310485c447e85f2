# A service in C++, with two requests at once and threads of its own: docs/server.md, docs/cpp.md.
set -eu
ingot compile examples/digits/digits.onnx -o out --name digits --target c:native
make -s -C out
cat > service.cpp <<'END'
#include <algorithm>
#include <cstdio>
#include <future>
#include "digits.hpp"
static void on_my_threads(void *, igrt_task_fn task, void *arg, int64_t n)
{
    auto half = [=](int worker) { for (int64_t i = worker; i < n; i += 2) task(arg, i, worker); };
    auto other = std::async(std::launch::async, half, 1);
    half(0);
}                                                    // waits for the other half
static int answer(int seed)
{
    digits_config config = {};
    config.struct_size = sizeof config;
    config.threads = 2;
    config.parallel_for = on_my_threads;
    digits::model net(config);
    float image[64], scores[10];
    for (int i = 0; i < 64; i++) image[i] = (float)((i * 7 + seed) % 17);
    digits::inputs in;
    digits::outputs out;
    in.image = image;
    out.probabilities = scores;
    net.run(in, out);
    return (int)(std::max_element(scores, scores + 10) - scores);
}
int main()
{
    auto other = std::async(std::launch::async, answer, 1);
    std::printf("%d %d\n", answer(0), other.get());
}
END
c++ -O2 -Iout -o service service.cpp out/libdigits.a -pthread -lm
./service
