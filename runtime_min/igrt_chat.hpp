/*
 * igrt_chat.hpp - a conversation with a language model, whose answers come piece by piece. C++17.
 *
 *     #include "model_igrt.h"     first: the runtime's functions under this model's names
 *     #include "igrt_chat.hpp"
 *     #include "model.hpp"
 *
 *     model::model net(igrt::load("model.weights"));
 *     const igrt::memory vocabulary = igrt::load("model.vocab");
 *     igrt::chat<model::model, model::inputs, model::outputs> chat(
 *         net, vocabulary, model::input_size::ids, model::output_size::logits);
 *     igrt::chat_options how;
 *     how.stop = {"\n\n"};
 *     chat.say("What is the capital of France?", how, [](std::string_view piece) {
 *         std::cout << piece << std::flush;
 *         return true;            false: no more of it
 *     });
 *
 * Two more parameters, model::decode_inputs and model::decode_outputs: tokens of an answer come
 * from decode(), which is made for one.
 */
#ifndef IGRT_CHAT_HPP
#define IGRT_CHAT_HPP

#include <string>
#include <string_view>
#include <vector>

#include "igrt.hpp"
#include "igrt_chat.h"
#include "igrt_sample.h"

namespace igrt
{

struct chat_options {
    igrt_sampling sampling = {}; /* zeros: always the most likely token */
    std::size_t tokens = 512;    /* of an answer, at most */
    std::vector<std::string> stop; /* an answer ends before any of these */
};

template <class Model, class Inputs, class Outputs, class DecodeInputs = void,
          class DecodeOutputs = void>
class chat
{
  public:
    /* The vocabulary has to stay. chunk: tokens of one run, at most; words: logits. */
    chat(Model &model, const memory &vocabulary, std::size_t chunk, std::size_t words)
        : model_(model), chunk_(chunk), logits_(words)
    {
        status_ = igrt_vocab_open(&vocab_, vocabulary.data(), vocabulary.size());
#if !defined(IGRT_NO_EXCEPTIONS)
        if (status_ != IGRT_OK)
            throw error("the vocabulary is not sound", status_);
#endif
    }

    explicit operator bool() const noexcept
    {
        return status_ == IGRT_OK;
    }
    /* All tokens so far. */
    const std::vector<std::int32_t> &ids() const noexcept
    {
        return ids_;
    }
    const igrt_vocab &vocabulary() const noexcept
    {
        return vocab_;
    }

    /* Begins anew, with a system prompt if there is one. */
    IGRT_STATUS reset(std::string_view system = {})
    {
        ids_.clear();
        ran_ = 0;
        system_ = system;
        return model_.reset();
    }

    /* A turn of the user, and the answer. */
    template <class Piece>
    IGRT_STATUS say(std::string_view text, const chat_options &how, Piece &&piece)
    {
        if (status_ != IGRT_OK)
            return status_;
        const igrt_chat_form &form = *igrt_chat_form_of(&vocab_);
        const bool first = ids_.empty();
        std::string all;
        std::vector<igrt_typed> typed;
        if (first && !system_.empty()) {
            all = form.system[0];
            typed.push_back(put_typed(all, system_));
            all += form.system[1];
        } else {
            all = first ? form.user[0] : form.between;
        }
        typed.push_back(put_typed(all, text));
        all += form.user[1];
        add(all, first ? IGRT_TEXT_CONTROL | IGRT_TEXT_BEGINS : IGRT_TEXT_CONTROL, typed);
        return answer(how, piece);
    }

    /* Goes on with what is there and a text behind it, without a form. */
    template <class Piece>
    IGRT_STATUS complete(std::string_view text, const chat_options &how, Piece &&piece)
    {
        if (status_ != IGRT_OK)
            return status_;
        add(text, ids_.empty() ? static_cast<unsigned>(IGRT_TEXT_BEGINS) : 0u);
        return answer(how, piece);
    }

  private:
    /* What a user typed, behind a text: where it is there. */
    igrt_typed put_typed(std::string &all, std::string_view text) const
    {
        static constexpr std::string_view white = " \t\n\v\f\r";
        if (vocab_.word[IGRT_VOCAB_FLAGS] & IGRT_VOCAB_TRIMS) {
            const std::size_t from = text.find_first_not_of(white);
            text.remove_prefix(from < text.size() ? from : text.size());
            text = text.substr(0, text.find_last_not_of(white) + 1);
        }
        const std::size_t at = all.size();
        all += text;
        return {at, all.size()};
    }

    void add(std::string_view text, unsigned how, const std::vector<igrt_typed> &typed = {})
    {
        const std::size_t n = ids_.size();
        if (n)
            how |= IGRT_TEXT_GOES_ON;
        ids_.resize(n + text.size() + 8);
        ids_.resize(n + igrt_tokenize_typed(&vocab_, text.data(), text.size(), how, typed.data(),
                                            typed.size(), ids_.data() + n, ids_.size() - n));
    }

    igrt_status run(std::size_t n)
    {
        const span<const std::int32_t> part(ids_.data() + ran_, n);
        if constexpr (!std::is_void<DecodeInputs>::value) {
            if (n == 1) {
                DecodeInputs in;
                DecodeOutputs out;
                in.ids = part;
                out.logits = logits_;
                return model_.decode(in, out);
            }
        }
        Inputs in;
        Outputs out;
        in.ids = part;
        in.ids_dims[0] = static_cast<std::int64_t>(n);
        out.logits = logits_;
        return model_.run(in, out);
    }

    igrt_status catch_up()
    {
        igrt_status status = IGRT_OK;
        while (ran_ < ids_.size() && status == IGRT_OK) {
            const std::size_t left = ids_.size() - ran_, n = left < chunk_ ? left : chunk_;
            status = run(n);
            ran_ += status == IGRT_OK ? n : 0;
        }
        return status;
    }

    /* Bytes that may be told: no part of a character, nothing that may begin a stop string. */
    static std::size_t ready(const std::string &s, const std::vector<std::string> &stops)
    {
        std::size_t n = s.size(), most = 0;
        for (std::size_t back = 1; back <= 3 && back <= s.size(); back++) {
            const unsigned char c = static_cast<unsigned char>(s[s.size() - back]);
            const std::size_t length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
            if (length > back)
                n = s.size() - back;
            if (c < 0x80 || c >= 0xc0)
                break;
        }
        for (const std::string &stop : stops)
            for (std::size_t k = 1; k < stop.size() && k <= s.size(); k++)
                if (k > most && !s.compare(s.size() - k, k, stop, 0, k))
                    most = k;
        return n < s.size() - most ? n : s.size() - most;
    }

    template <class Piece> igrt_status answer(const chat_options &how, Piece &&piece)
    {
        igrt_sampling sampling = how.sampling;
        std::string kept;
        char text[4096];
        for (std::size_t i = 0; i < how.tokens; i++) {
            const igrt_status status = catch_up();
            if (status != IGRT_OK)
                return status;
            const std::int32_t id =
                igrt_sample(&sampling, logits_.data(), static_cast<std::int32_t>(logits_.size()),
                            ids_.data(), ids_.size());
            if (igrt_token_ends(&vocab_, id))
                break;
            ids_.push_back(id);
            const std::size_t bytes = igrt_token_text(&vocab_, id, 0, text, sizeof text);
            kept.append(text, bytes < sizeof text ? bytes : sizeof text);
            std::size_t end = std::string::npos;
            for (const std::string &stop : how.stop) {
                const std::size_t at = stop.empty() ? std::string::npos : kept.find(stop);
                end = at < end ? at : end;
            }
            const std::size_t n = end != std::string::npos ? end : ready(kept, how.stop);
            const bool more = !n || piece(std::string_view(kept.data(), n));
            kept.erase(0, n);
            if (end != std::string::npos || !more)
                return IGRT_OK;
        }
        if (!kept.empty())
            piece(std::string_view(kept));
        return IGRT_OK;
    }

    Model &model_;
    igrt_vocab vocab_ = {};
    std::size_t chunk_, ran_ = 0;
    std::vector<float> logits_;
    std::vector<std::int32_t> ids_;
    std::string system_;
    igrt_status status_ = IGRT_OK;
};

} // namespace igrt

#endif
