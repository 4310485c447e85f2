# A network on a Cortex-M4 without an operating system, under QEMU: docs/firmware.md, whose start-up
# code is that of examples/cortex_m.
set -eu
for tool in arm-none-eabi-gcc qemu-system-arm; do
    command -v $tool > /dev/null || { echo "$tool is not installed"; exit 77; }
done
ingot compile examples/digits/digits.onnx -o net --name digits --target c:cortex-m4 > sizes.txt 2>&1
cat sizes.txt
grep -q 'flash .* RAM .* stack' sizes.txt
make -s -C net
cat > main.c <<'END'
#include "board.h"
#include "digits.h"
static _Alignas(DIGITS_ARENA_ALIGN) unsigned char arena[DIGITS_ARENA_BYTES(1)];
static digits_ctx ctx;
static float image[64], scores[10];
int main(void)
{
    const digits_config config = {.struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    const digits_inputs in = {.image = image};
    digits_outputs out = {.probabilities = scores};
    for (int row = 1; row < 7; row++)
        image[8 * row + 4] = 16;
    if (digits_init(&ctx, &config) != IGRT_OK || digits_run(&ctx, &in, &out) != IGRT_OK)
        return 1;
    unsigned best = 0;
    for (unsigned i = 1; i < 10; i++)
        best = scores[i] > scores[best] ? i : best;
    board_say_number("read as ", best);
    return 0;
}
END
board=examples/cortex_m
arm-none-eabi-gcc -mthumb -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard -std=c11 -O2 -Inet -I$board \
    -nostartfiles --specs=nosys.specs -Wl,--gc-sections -T $board/board.ld -o digits.elf main.c $board/board.c \
    net/libdigits.a -lm
timeout 60 qemu-system-arm -M mps2-an386 -nographic -icount shift=0 \
    -semihosting-config enable=on,target=native -kernel digits.elf < /dev/null > said.txt 2>&1
grep 'read as 1' said.txt
