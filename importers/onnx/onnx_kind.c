/*
 * onnx_kind.c - what else than an ONNX model people give to a compiler of models, and what to do
 * with it.
 *
 * Most kinds tell themselves by their first bytes, which no ONNX model can begin with. Zip files
 * are told apart by the names in their directory. Other formats of protobuf begin like ONNX models:
 * they are looked at only after a file turned out not to be one.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "onnx_read.h"

enum { TEXT_BYTES = 4096, MAX_NAMES = 65536 }; /* how far a file is looked at */

typedef struct {
    size_t offset, len;
    const char *bytes, *kind;
} Magic;

static const char keras_h5[] =
    "an HDF5 file (.h5), as Keras saved models: "
    "model.export(\"model.onnx\", format=\"onnx\") or tf2onnx writes ONNX";
static const char ggml[] = "a GGML file, older than GGUF: convert the model it was made of to GGUF";
static const char packed[] = "a packed file: unpack it first";

static const Magic magics[] = {
    {4, 4, "ORTM",
     "a model in ONNX Runtime's own format (.ort): give the .onnx file it was made of"},
    {4, 4, "ODTC",
     "a checkpoint of ONNX Runtime's training: give the training_model.onnx in the same folder"},
    {0, 6, "\x89HDF\r\n", keras_h5},
    {0, 4, "ggml", ggml},
    {0, 4, "lmgg", ggml},
    {0, 4, "tjgg", ggml},
    {0, 6, "\x93NUMPY",
     "a NumPy array (.npy), which is data: the model comes first, data by --input or --data"},
    {0, 3, "\x1f\x8b\x08", packed},
    {0, 6,
     "\xfd"
     "7zXZ",
     packed},
    {0, 4, "\x28\xb5\x2f\xfd", packed},
    {0, 6, "7z\xbc\xaf\x27\x1c", packed},
    {0, 4, "Rar!", packed},
    {0, 3, "BZh", packed},
    {257, 5, "ustar", "a tar file: unpack it first"},
    {0, 8, "7767517\n", "a network of ncnn (.param): give the ONNX file it was made of"},
    {0, 23, "version https://git-lfs",
     "a pointer of git-lfs: the file itself was not fetched (git lfs pull)"},
};

/* Text by a word near its beginning, after the first characters; in this order. */
typedef struct {
    const char *begin, *word, *kind;
} Text;

static const Text texts[] = {
    {"<", "<html", "an HTML page: a download gave it in place of the file"},
    {"<", "<HTML", "an HTML page: a download gave it in place of the file"},
    {"<", "<!DOCTYPE", "an HTML page: a download gave it in place of the file"},
    {"<", "<PMML", "a PMML document: export the model to ONNX from where it was made"},
    {"<", "<net ", "a network of OpenVINO (.xml): give the ONNX file it was made of"},
    {"<", "ir_version",
     "an ONNX model as text: onnx.save(onnx.parser.parse_model(text), \"model.onnx\") writes it as "
     "a file"},
    {"{", "\"learner\"", "an XGBoost model (.json): onnxmltools converts it"},
    {"{", "learner", "an XGBoost model (.ubj): onnxmltools converts it"},
    {"{", "\"class_name\"",
     "the architecture of a Keras model without weights: model.export(\"model.onnx\", "
     "format=\"onnx\") writes both"},
    {"{", "\"graph\"",
     "an ONNX model as JSON: google.protobuf.json_format.Parse() reads it, "
     "onnx.save() writes it as a file"},
    {"{", "", "a JSON file, which holds no ONNX model"},
    {"tree\n", "version=", "a LightGBM model (.txt): onnxmltools converts it"},
    {"node {", "op:", "a TensorFlow graph as text (.pbtxt): tf2onnx converts SavedModels"},
    {"name:", "layer", "a network of Caffe (.prototxt), without weights"},
};

/* Pickles by a name that is in them. */
static const Text pickles[] = {
    {"\x80", "torch",
     "a pickle of Python with PyTorch's tensors (.pt, .pth, .bin): export the model "
     "with torch.onnx.export()"},
    {"\x80", "sklearn", "a pickle of a scikit-learn model: skl2onnx converts it"},
    {"\x80", "xgboost", "a pickle of an XGBoost model: onnxmltools converts it"},
    {"\x80", "lightgbm", "a pickle of a LightGBM model: onnxmltools converts it"},
    {"\x80", "",
     "a pickle of Python, as PyTorch and scikit-learn save models: export the model with "
     "torch.onnx.export(), or convert it with skl2onnx"},
};

/* Names in a zip file; the first that is there tells. */
typedef struct {
    const char *ending, *kind;
} Zipped;

static const char pytorch[] = "a PyTorch file (.pt, .pth), a zip of Python objects: export the "
                              "model with torch.onnx.export()";

static const Zipped zipped[] = {
    {"model.weights.h5",
     "a Keras model (.keras): model.export(\"model.onnx\", format=\"onnx\") writes ONNX"},
    {"/data.pkl", pytorch},
    {"serialized_exported_program.json",
     "a program of torch.export (.pt2): torch.onnx.export() takes it and writes ONNX"},
    {"models/model.json",
     "a program of torch.export (.pt2): torch.onnx.export() takes it and writes ONNX"},
    {"saved_model.pb", "a zip file with a TensorFlow SavedModel: unpack it, tf2onnx converts the "
                       "folder (--saved-model)"},
    {".mlmodel",
     "a zip file with a Core ML model: export the model to ONNX from where it was made"},
    {".tflite", "a zip file with a TensorFlow Lite model: unpack it first"},
    {".npy",
     "NumPy arrays (.npz), which are data: the model comes first, data by --data or --input"},
    {".onnx", "a zip file with an ONNX model in it: unpack it first"},
    {"", "a zip file, in which nothing is a model that is known here"},
};

static uint32_t little(const uint8_t *p, int bytes)
{
    uint32_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint32_t)p[i] << (8 * i);
    return v;
}

static bool ends_with(const uint8_t *name, size_t len, const char *ending)
{
    size_t n = strlen(ending);
    return len >= n && !memcmp(name + len - n, ending, n);
}

/* Is there a name with that ending in the directory at `at`? Entries are 46 bytes, the name, and
 * two more fields. */
static bool directory_has(const MapFile *m, size_t at, const char *ending)
{
    for (int i = 0; i < MAX_NAMES && at + 46 <= m->len; i++) {
        const uint8_t *e = m->data + at;
        size_t name = little(e + 28, 2), more = little(e + 30, 2) + little(e + 32, 2);
        if (memcmp(e, "PK\1\2", 4) != 0 || name > m->len - at - 46)
            return false;
        if (ends_with(e + 46, name, ending))
            return true;
        at += 46 + name + more;
    }
    return false;
}

/* Where the directory begins, by the record at the end of the file (22 bytes and a comment, or what
 * a file beyond 4 GB has before that); 0: not found. */
static size_t directory_at(const MapFile *m)
{
    for (size_t back = 22; back <= m->len && back < 22 + 65536; back++) {
        const uint8_t *e = m->data + m->len - back;
        if (memcmp(e, "PK\5\6", 4) != 0)
            continue;
        size_t at = little(e + 16, 4);
        if (at == UINT32_MAX && back + 76 <= m->len && !memcmp(e - 76, "PK\6\6", 4))
            at = little(e - 76 + 48, 4) | (size_t)little(e - 76 + 52, 4) << 32;
        return at < m->len ? at : 0;
    }
    return 0;
}

static const char *zip_kind(const MapFile *m)
{
    size_t at = directory_at(m), name = m->len > 30 ? little(m->data + 26, 2) : 0;
    for (size_t i = 0; i < sizeof zipped / sizeof *zipped; i++) {
        bool has = at ? directory_has(m, at, zipped[i].ending)
                      : *zipped[i].ending && name <= m->len - 30 &&
                            ends_with(m->data + 30, name, zipped[i].ending);
        if (has)
            return zipped[i].kind;
    }
    return at ? zipped[sizeof zipped / sizeof *zipped - 1].kind
              : "a zip file whose end is missing: it is not whole";
}

/* Is the word in the first bytes? */
static bool has_word(const MapFile *m, const char *word)
{
    size_t n = strlen(word), end = m->len < TEXT_BYTES ? m->len : TEXT_BYTES;
    for (size_t i = 0; i + n <= end; i++)
        if (!memcmp(m->data + i, word, n))
            return true;
    return false;
}

static const char *text_kind(const MapFile *m, const Text *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t begin = strlen(list[i].begin);
        if (m->len > begin && !memcmp(m->data, list[i].begin, begin) && has_word(m, list[i].word))
            return list[i].kind;
    }
    return NULL;
}

const char *onnx_other_kind(const MapFile *m)
{
    const uint8_t *p = m->data;
    if (m->len > 4 && !memcmp(p, "PK\3\4", 4))
        return zip_kind(m);
    if (m->len > 9 && p[8] == '{' && !p[4] && !p[5] && !p[6] && !p[7])
        return "a safetensors file, which holds weights without a network: examples/safetensors "
               "builds one around it, and other tools export to ONNX";
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (m->len > magics[i].offset + magics[i].len &&
            !memcmp(p + magics[i].offset, magics[i].bytes, magics[i].len))
            return magics[i].kind;
    if (m->len > 2 && p[0] == 0x80 && p[1] >= 2 && p[1] <= 5)
        return text_kind(m, pickles, sizeof pickles / sizeof *pickles);
    return text_kind(m, texts, sizeof texts / sizeof *texts);
}

/* ---- other formats of protobuf --------------------------------------------------------------- */

/* One field of a message; a cursor goes through all. */
typedef struct {
    const uint8_t *p, *end;
    uint64_t number, value; /* value: of a varint, or the length of bytes */
    const uint8_t *bytes;
} MessageField;

static bool varint(MessageField *f, uint64_t *v)
{
    *v = 0;
    for (int shift = 0; shift < 64 && f->p < f->end; shift += 7) {
        *v |= (uint64_t)(*f->p & 0x7f) << shift;
        if (!(*f->p++ & 0x80))
            return true;
    }
    return false;
}

static bool field_next(MessageField *f)
{
    uint64_t tag;
    if (!varint(f, &tag))
        return false;
    f->number = tag >> 3;
    f->bytes = NULL;
    uint64_t fixed = (tag & 7) == 1 ? 8 : (tag & 7) == 5 ? 4 : 0;
    if ((tag & 7) == 0)
        return varint(f, &f->value);
    if (!fixed && ((tag & 7) != 2 || !varint(f, &f->value)))
        return false;
    f->value = fixed ? fixed : f->value;
    if (f->value > (uint64_t)(f->end - f->p))
        return false;
    f->bytes = f->p;
    f->p += f->value;
    return true;
}

static MessageField field_first(const uint8_t *p, size_t len)
{
    return (MessageField){.p = p, .end = p + len};
}

/* Those of the message in a field; none where it is a number. */
static MessageField field_within(const MessageField *f)
{
    return f->bytes ? field_first(f->bytes, (size_t)f->value) : (MessageField){0};
}

static bool is_word(const MessageField *f)
{
    for (uint64_t i = 0; f->bytes && i < f->value; i++)
        if (f->bytes[i] < ' ' || f->bytes[i] > '~')
            return false;
    return f->bytes && f->value > 0;
}

/* A node of a TensorFlow graph: its name (1) and operator (2). */
static bool is_tensorflow_node(const MessageField *node)
{
    MessageField f = field_within(node);
    return node->bytes && field_next(&f) && f.number == 1 && is_word(&f) && field_next(&f) &&
           f.number == 2 && is_word(&f);
}

/* A block of a Paddle program: its number (1) and that of the block around it (2). */
static bool is_paddle_block(const MessageField *block)
{
    MessageField f = field_within(block);
    return block->bytes && field_next(&f) && f.number == 1 && !f.bytes && field_next(&f) &&
           f.number == 2 && !f.bytes;
}

const char *onnx_other_protobuf(const MapFile *m)
{
    MessageField f = field_first(m->data, m->len);
    if (!field_next(&f))
        return NULL;
    if (f.number == 1 && is_tensorflow_node(&f))
        return "a graph of TensorFlow (.pb): tf2onnx converts it (--graphdef), or the SavedModel "
               "it is of";
    if (f.number == 1 && is_paddle_block(&f))
        return "a program of PaddlePaddle (.pdmodel): paddle2onnx converts it";
    if (f.number != 1 || f.bytes || !field_next(&f) || f.number != 2 || !f.bytes)
        return NULL;
    /* A version, then a message: the first graph of a SavedModel, or what a Core ML model says of
     * itself, whose network has a number of three digits. ONNX has the name of its producer
     * there. */
    MessageField inner = field_first(f.bytes, (size_t)f.value);
    bool message = field_next(&inner) && inner.bytes && f.bytes[0] == 0x0a && !is_word(&f);
    while (field_next(&f))
        if (f.number >= 200 && f.number < 1000 && f.bytes)
            return "a Core ML model (.mlmodel): export the model to ONNX from where it was made";
    if (message && f.p == f.end)
        return "a TensorFlow SavedModel (saved_model.pb): tf2onnx converts its folder "
               "(--saved-model)";
    return NULL;
}

/* ---- folders --------------------------------------------------------------------------------- */

const char *onnx_folder_kind(const char *path)
{
    static const Zipped inside[] = {
        {"saved_model.pb",
         "a folder with a TensorFlow SavedModel: tf2onnx converts it (--saved-model)"},
        {"Manifest.json",
         "a Core ML package (.mlpackage): export the model to ONNX from where it was made"},
        {"training_model.onnx", "a folder with ONNX Runtime's training artifacts: give the file "
                                "'training_model.onnx' in it"},
        {"model.onnx", "a folder; the model is the file 'model.onnx' in it"},
        {"config.json",
         "a folder, as Hugging Face's libraries save models: optimum-cli export onnx "
         "writes ONNX"},
    };
    struct stat st;
    char name[4096];
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return NULL;
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        int n = snprintf(name, sizeof name, "%s/%s", path, inside[i].ending);
        if (n > 0 && (size_t)n < sizeof name && stat(name, &st) == 0 && S_ISREG(st.st_mode))
            return inside[i].kind;
    }
    return "a folder; give the .onnx file";
}
