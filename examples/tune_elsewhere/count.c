/* count.c - a plugin of qemu-user: the time of a thread is the number of instructions that it has
 * executed.
 *
 * What clock_gettime(CLOCK_THREAD_CPUTIME_ID) writes is replaced, one instruction being one
 * nanosecond: programs that take times by it, as ./tune_run does, tell counts, which are the same
 * on every machine and in every run.
 *
 * The structure lies in the program's memory, which is that of QEMU from guest_base on: -B 0 makes
 * it 0.
 *
 *     cc -O2 -shared -fPIC -o count.so count.c
 *     qemu-aarch64 -B 0 -plugin ./count.so PROGRAM */
#include <stddef.h>
#include <stdint.h>

/* What QEMU has for plugins, whose header few systems install:
 * https://www.qemu.org/docs/master/devel/tcg-plugins.html */
typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           void (*cb)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, void (*cb)(unsigned, void *),
                                          int flags, void *user);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id,
                                          void (*cb)(qemu_plugin_id_t, unsigned, int64_t, uint64_t,
                                                     uint64_t, uint64_t, uint64_t, uint64_t,
                                                     uint64_t, uint64_t, uint64_t));
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t id,
                                              void (*cb)(qemu_plugin_id_t, unsigned, int64_t,
                                                         int64_t));

enum { CLOCK_GETTIME = 113, OF_THREAD = 3 }; /* of Linux, for AArch64 */

int qemu_plugin_version = 1;

static uint64_t instructions;
static int64_t *answer; /* seconds and nanoseconds; NULL: another call */

static void executed(unsigned cpu, void *n)
{
    (void)cpu;
    instructions += (uintptr_t)n;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    const uintptr_t n = qemu_plugin_tb_n_insns(tb);
    qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, 0, (void *)n);
}

static void call(qemu_plugin_id_t id, unsigned cpu, int64_t number, uint64_t clock, uint64_t time,
                 uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
    (void)id, (void)cpu, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    answer = number == CLOCK_GETTIME && clock == OF_THREAD ? (int64_t *)(uintptr_t)time : NULL;
}

static void called(qemu_plugin_id_t id, unsigned cpu, int64_t number, int64_t status)
{
    (void)id, (void)cpu, (void)number;
    if (!answer || status)
        return;
    answer[0] = (int64_t)(instructions / 1000000000);
    answer[1] = (int64_t)(instructions % 1000000000);
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
    (void)info, (void)argc, (void)argv;
    if (argc)
        return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_vcpu_syscall_cb(id, call);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, called);
    return 0;
}
