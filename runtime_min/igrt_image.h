/*
 * igrt_image.h - f32 as an image (OpenCL): element e is part e % 4 of pixel e / 4, and pixels lie
 * in rows of IGRT_IMAGE_WIDTH, as igrt_cl_image() and igrt_cl_fill_image() write them.
 */
#define IGRT_IMAGE_WIDTH 2048

__constant sampler_t igrt_nearest =
    CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;

/* The pixel that begins at an element; what lies outside is zero. */
inline float4 igrt_pixel(__read_only image2d_t image, int at)
{
    return read_imagef(image, igrt_nearest,
                       (int2)(at / 4 % IGRT_IMAGE_WIDTH, at / (4 * IGRT_IMAGE_WIDTH)));
}

/* One element. */
inline float igrt_texel(__read_only image2d_t image, int at)
{
    const float4 p = igrt_pixel(image, at & ~3);
    return at & 2 ? (at & 1 ? p.w : p.z) : (at & 1 ? p.y : p.x);
}
