/* bundle_package.c - --package: what other build systems want to know of the bundle.
 *
 *   zephyr    a module: zephyr/module.yml, CMakeLists.txt, Kconfig
 *   esp-idf   a component: CMakeLists.txt, idf_component.yml
 *   arduino   a library: library.properties, the sources in src/
 *   cmsis     a pack's description: <name>.pdsc
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
    sb_printf(&sb,
              "# The compiled model as a module of Zephyr; flags are those of the board.\n"
              "if(CONFIG_INGOT_%s)\n  zephyr_library_named(%s_model)\n  zephyr_library_sources(\n",
              b->upper, b->name);
    list_files(&sb, b, false, "", "");
    sb_puts(&sb, "  )\n  zephyr_library_compile_options(-ffp-contract=off)\n  "
                 "zephyr_include_directories(.)\nendif()\n");
    bundle_file(b, "CMakeLists.txt", &sb);
}

static void esp_idf(Bundle *b)
{
    StrBuf sb = {0};
    sb_puts(&sb, "# The compiled model as a component of ESP-IDF.\nidf_component_register(SRCS\n");
    list_files(&sb, b, false, "\"", "\"");
    sb_puts(&sb, "    INCLUDE_DIRS \".\")\n"
                 "target_compile_options(${COMPONENT_LIB} PRIVATE -ffp-contract=off)\n");
    bundle_file(b, "CMakeLists.txt", &sb);
    sb = (StrBuf){0};
    sb_printf(&sb, "version: \"1.0.0\"\ndescription: the compiled model %s\n", b->name);
    bundle_file(b, "idf_component.yml", &sb);
}

static void arduino(Bundle *b)
{
    StrBuf sb = {0};
    sb_printf(
        &sb,
        "name=%s\nversion=1.0.0\nauthor=compiled by ingot\nmaintainer=compiled by ingot\n"
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

void bundle_package(Bundle *b)
{
    static const struct {
        const char *name;
        void (*write)(Bundle *);
    } packages[] = {
        {"zephyr", zephyr}, {"esp-idf", esp_idf}, {"arduino", arduino}, {"cmsis", cmsis}};
    for (size_t i = 0; i < sizeof packages / sizeof packages[0]; i++)
        if (!strcmp(b->package, packages[i].name))
            packages[i].write(b);
}
