/* swish.c - x sigmoid(beta x), of one element: ingot makes the loop. */
#include <math.h>

/* elementwise
 * default[beta] = 1 */
float swish(float x, float beta)
{
    return x / (1.0f + expf(-beta * x));
}
