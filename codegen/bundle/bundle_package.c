/* bundle_package.c - --package: what other build systems want to know of the bundle.
 *
 *   zephyr    a module: zephyr/module.yml, CMakeLists.txt, Kconfig
 *   esp-idf   a component: CMakeLists.txt, idf_component.yml
 *   arduino   a library: library.properties, the sources in src/, which ask for -O2 themselves
 *   cmsis     a pack's description: <name>.pdsc
 *   web       bundle_web.c
 *
 * All take the model's own files as they are; there is no driver. */
#include <string.h>

#include "bundle.h"

/* "    <before>file<after>" for each source (and header). */
static void list_files(StrBuf *sb, const Bundle *b, bool headers, const char *before,
                       const char *after)
{
    for (int i = 0; i < b->nfile; i++) {
        size_t n = strlen(b->files[i]);
        bool header = n > 2 && !strcmp(b->files[i] + n - 2, ".h");
        if (headers ? header : is_source(b->files[i]))
            sb_printf(sb, "    %s%s%s\n", before, b->files[i], after);
    }
}

static void zephyr(Bundle *b)
{
    StrBuf sb = {0};
    sb_printf(&sb,
              "# ZEPHYR_EXTRA_MODULES is to name this folder.\nname: %s\nbuild:\n  cmake: .\n  "
              "kconfig: Kconfig\n",
              b->name);
    bundle_file(b, "zephyr/module.yml", &sb);
    sb = (StrBuf){0};
    sb_printf(&sb,
              "config INGOT_%s\n\tbool \"the compiled model %s\"\n\tdefault y\n\thelp\n"
              "\t  %s.h declares it.\n",
              b->upper, b->name, b->name);
    bundle_file(b, "Kconfig", &sb);
    sb = (StrBuf){0};
    sb_printf(
        &sb,
        "# The compiled model as a module of Zephyr; flags are those of the board, but for -O2.\n"
        "if(CONFIG_INGOT_%s)\n  zephyr_library_named(%s_model)\n  zephyr_library_sources(\n",
        b->upper, b->name);
    list_files(&sb, b, false, "", "");
    sb_puts(&sb, "  )\n  zephyr_library_compile_options(-O2 -ffp-contract=off)\n  "
                 "zephyr_include_directories(.)\nendif()\n");
    bundle_file(b, "CMakeLists.txt", &sb);
}

static void esp_idf(Bundle *b)
{
    StrBuf sb = {0};
    sb_puts(&sb, "# The compiled model as a component of ESP-IDF.\nidf_component_register(SRCS\n");
    list_files(&sb, b, false, "\"", "\"");
    sb_puts(&sb, "    INCLUDE_DIRS \".\")\n"
                 "target_compile_options(${COMPONENT_LIB} PRIVATE -O2 -ffp-contract=off)\n");
    bundle_file(b, "CMakeLists.txt", &sb);
    sb = (StrBuf){0};
    sb_printf(&sb,
              "version: \"1.0.0\"\ndescription: the compiled model %s\n"
              "license: MIT-0 # of the runtime's files; the model's are its owner's\n",
              b->name);
    bundle_file(b, "idf_component.yml", &sb);
}

static void arduino(Bundle *b)
{
    StrBuf sb = {0};
    sb_printf(
        &sb,
        "# The runtime's files are under MIT-0; the model's are its "
        "owner's.\nname=%s\nversion=1.0.0\nauthor=compiled by ingot\nmaintainer=compiled by ingot\n"
        "sentence=The compiled model %s.\nparagraph=%s.h declares it.\ncategory=Data Processing\n"
        "url=\narchitectures=*\nincludes=%s.h\n",
        b->name, b->name, b->name, b->name);
    bundle_file(b, "library.properties", &sb);
}

static void cmsis(Bundle *b)
{
    StrBuf sb = {0};
    const char *n = b->name;
    sb_printf(
        &sb,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<!-- SPDX-License-Identifier: LicenseRef-ModelOwner -->\n"
        "<package schemaVersion=\"1.7.7\" xmlns:xs=\"http://www.w3.org/2001/XMLSchema-instance\" "
        "xs:noNamespaceSchemaLocation=\"PACK.xsd\">\n"
        "  <vendor>ingot</vendor>\n  <name>%s</name>\n  <description>The compiled model "
        "%s</description>\n"
        "  <url></url>\n  <releases><release version=\"1.0.0\">compiled by "
        "ingot</release></releases>\n"
        "  <components>\n    <component Cclass=\"Machine Learning\" Cgroup=\"Model\" Csub=\"%s\" "
        "Cversion=\"1.0.0\">\n      <description>%s.h declares it</description>\n      <files>\n"
        "        <file category=\"include\" name=\"./\"/>\n",
        n, n, n, n);
    list_files(&sb, b, true, "    <file category=\"header\" name=\"", "\"/>");
    list_files(&sb, b, false, "    <file category=\"sourceC\" name=\"", "\"/>");
    sb_puts(&sb, "      </files>\n    </component>\n  </components>\n</package>\n");
    bundle_file(b, arena_printf(b->a, "ingot.%s.pdsc", n), &sb);
}

/* ---- an example -------------------------------------------------------------------------------
 */

/* The statements of a program that has the model, up to the status of its selftest. */
static const char *example_body(const Bundle *b)
{
    const char *n = b->name, *u = b->upper;
    return arena_printf(b->a,
                        "    static unsigned char arena[%s_ARENA_BYTES(1)] "
                        "__attribute__((aligned(%s_ARENA_ALIGN)));\n"
                        "    static %s_ctx ctx;\n"
                        "    %s_config config;\n"
                        "    %s_status status;\n"
                        "    memset(&config, 0, sizeof config);\n"
                        "    config.struct_size = sizeof config;\n"
                        "    config.arena = arena;\n"
                        "    config.arena_bytes = sizeof arena;\n"
                        "    status = %s_init(&ctx, &config);\n"
                        "    if (status == IGRT_OK)\n        status = %s_selftest(&ctx); /* "
                        "%s_run() is called as it "
                        "calls it */\n",
                        u, u, n, n, n, n, n, n);
}

static void example_c(Bundle *b, const char *file, const char *function)
{
    StrBuf sb = {0};
    sb_printf(
        &sb,
        "/* Runs the model on its golden data, and tells whether it gives what it should. */\n"
        "#include \"%s.h\"\n\n#include <stdio.h>\n#include <string.h>\n\n%s\n{\n%s"
        "    printf(\"%s: %%s\\n\", status == IGRT_OK ? \"selftest: ok\" : \"it fails\");\n%s}\n",
        b->name, function, example_body(b), b->name,
        strstr(function, "int ") ? "    return 0;\n" : "");
    bundle_file(b, file, &sb);
}

static void zephyr_example(Bundle *b)
{
    StrBuf sb = {0};
    sb_printf(&sb,
              "# west build -b BOARD %s/example\ncmake_minimum_required(VERSION 3.20)\n"
              "list(APPEND ZEPHYR_EXTRA_MODULES ${CMAKE_CURRENT_SOURCE_DIR}/..)\n"
              "find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})\nproject(%s_example LANGUAGES "
              "C)\ntarget_sources(app PRIVATE main.c)\n",
              b->name, b->name);
    bundle_file(b, "example/CMakeLists.txt", &sb);
    sb = (StrBuf){0};
    sb_printf(&sb, "CONFIG_INGOT_%s=y\nCONFIG_FPU=y\n", b->upper);
    bundle_file(b, "example/prj.conf", &sb);
    example_c(b, "example/main.c", "int main(void)");
}

static void esp_idf_example(Bundle *b)
{
    StrBuf sb = {0};
    sb_printf(&sb,
              "# idf.py -C %s/example set-target esp32s3 flash monitor\n"
              "cmake_minimum_required(VERSION 3.16)\n"
              "get_filename_component(component ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)\n"
              "set(EXTRA_COMPONENT_DIRS ${component})\n"
              "include($ENV{IDF_PATH}/tools/cmake/project.cmake)\nproject(%s_example)\n",
              b->name, b->name);
    bundle_file(b, "example/CMakeLists.txt", &sb);
    sb = (StrBuf){0};
    sb_puts(&sb, "# REQUIRES: the component is called as its folder is.\n"
                 "get_filename_component(component ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)\n"
                 "get_filename_component(component ${component} NAME)\n"
                 "idf_component_register(SRCS \"main.c\" REQUIRES ${component})\n");
    bundle_file(b, "example/main/CMakeLists.txt", &sb);
    example_c(b, "example/main/main.c", "void app_main(void);\nvoid app_main(void)");
}

static void arduino_example(Bundle *b)
{
    StrBuf sb = {0};
    sb_printf(&sb,
              "// Runs the model on its golden data, and tells whether it gives what it should.\n"
              "#include <%s.h>\n#include <string.h>\n\nvoid setup() {\n    "
              "Serial.begin(115200);\n    while (!Serial) {\n    }\n%s"
              "    Serial.println(status == IGRT_OK ? \"selftest: ok\" : \"it fails\");\n}\n\n"
              "void loop() {\n}\n",
              b->name, example_body(b));
    bundle_file(b, "examples/selftest/selftest.ino", &sb);
}

/* Who gives no machine gets kernels that suit every large processor. */
static void tell_target(const Bundle *b)
{
    if (b->target->bare || !b->target->machine.lanes)
        return;
    context_report(b->c, INGOT_NOTE, INGOT_OK,
                   "--package %s: '%s' is no target of a microcontroller; for one say so: --target "
                   "c:cortex-m4, c:esp32s3, c:rv32imc ... (`ingot targets` lists them)",
                   b->package, b->o->target ? b->o->target : "c");
}

void bundle_package(Bundle *b)
{
    static const struct {
        const char *name;
        void (*write)(Bundle *);
        void (*example)(Bundle *); /* a program, or NULL */
    } packages[] = {{"zephyr", zephyr, zephyr_example},
                    {"esp-idf", esp_idf, esp_idf_example},
                    {"arduino", arduino, arduino_example},
                    {"cmsis", cmsis, NULL}};
    for (size_t i = 0; i < sizeof packages / sizeof packages[0]; i++) {
        if (strcmp(b->package, packages[i].name) != 0)
            continue;
        tell_target(b);
        packages[i].write(b);
        if (packages[i].example && !b->memory && b->has_selftest)
            packages[i].example(b);
    }
}
