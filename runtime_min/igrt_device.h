/*
 * igrt_device.h - which GPU igrt_config.gpu asks for.
 */
#ifndef IGRT_DEVICE_H
#define IGRT_DEVICE_H

#include <string.h>

/* Is it the GPU of this number and UUID?  Up to 7 digits are a number; of a UUID there are 8 and
 * more, by hyphens apart or not. */
static inline int igrt_is_device(const char *which, int number, const unsigned char uuid[16])
{
    static const char digits[] = "0123456789abcdef";
    enum { FEW = 7, MOST = 40 /* characters */ };
    int n = 0, wanted = 0;
    const size_t length = which ? strlen(which) : 0;
    if (length == 0)
        return number == 0;
    for (size_t i = 0; i < length && i <= FEW && which[i] >= '0' && which[i] <= '9'; i++, n++)
        wanted = 10 * wanted + (which[i] - '0');
    if (n <= FEW && (size_t)n == length)
        return wanted == number;
    if (length > MOST)
        return 0;
    n = 0;
    for (size_t i = strncmp(which, "GPU-", 4) ? 0 : 4; i < length; i++) {
        if (which[i] == '-')
            continue;
        if (n == 32 || digits[uuid[n / 2] >> (n % 2 ? 0 : 4) & 15] != (which[i] | 32))
            return 0;
        n++;
    }
    return n > FEW;
}

#endif
