/* Memory that jitdump.hpp takes from malloc.  Nothing throws if there is none.  Do not use this
 * header by itself; jitdump.hpp includes it.  Since 0.2.0. */
#ifndef JITDUMP_MEMORY_HPP
#define JITDUMP_MEMORY_HPP

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

namespace perfjit::detail
{

/* A growing array.  Its elements are copied as bytes, and its memory is kept.
 */
template <class T> class list
{
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    list() noexcept = default;
    list(const list &) = delete;
    list &operator=(const list &) = delete;
    list(list &&other) noexcept
    {
        swap(other);
    }
    /* OTHER has this one's memory then, and no elements. */
    list &operator=(list &&other) noexcept
    {
        clear();
        swap(other);
        return *this;
    }
    ~list()
    {
        std::free(data_);
    }

    bool add(const T &element) noexcept
    {
        if (count_ == room_ && !grow())
            return false;
        data_[count_++] = element;
        return true;
    }
    void clear() noexcept
    {
        count_ = 0;
    }
    const T *data() const noexcept
    {
        return data_;
    }
    std::size_t size() const noexcept
    {
        return count_;
    }
    const T &last() const noexcept
    {
        return data_[count_ - 1];
    }

  private:
    void swap(list &other) noexcept
    {
        std::swap(data_, other.data_);
        std::swap(count_, other.count_);
        std::swap(room_, other.room_);
    }
    bool grow() noexcept
    {
        const std::size_t room = room_ ? 2 * room_ : 16;
        void *data = room <= SIZE_MAX / 2 / sizeof(T)
                         ? std::realloc(static_cast<void *>(data_), room * sizeof(T))
                         : nullptr;
        if (!data)
            return false;
        data_ = static_cast<T *>(data);
        room_ = room;
        return true;
    }

    T *data_ = nullptr;
    std::size_t count_ = 0, room_ = 0;
};

/* Copies of strings, with the NUL that C wants, at addresses that stay. */
class text_pool
{
    struct chunk {
        chunk *next;
        std::size_t room;
    };

  public:
    text_pool() noexcept = default;
    text_pool(const text_pool &) = delete;
    text_pool &operator=(const text_pool &) = delete;
    text_pool(text_pool &&other) noexcept
        : first_(std::exchange(other.first_, nullptr)), used_(std::exchange(other.used_, 0))
    {
    }
    text_pool &operator=(text_pool &&other) noexcept
    {
        clear();
        std::swap(first_, other.first_);
        std::swap(used_, other.used_);
        return *this;
    }
    ~text_pool()
    {
        drop(nullptr);
    }

    /* NULL if memory runs out. */
    const char *copy(std::string_view text) noexcept
    {
        if ((!first_ || text.size() >= first_->room - used_) && !add_chunk(text.size()))
            return nullptr;
        char *to = reinterpret_cast<char *>(first_ + 1) + used_;
        if (!text.empty())
            std::memcpy(to, text.data(), text.size());
        to[text.size()] = '\0';
        used_ += text.size() + 1;
        return to;
    }

    /* One chunk stays, for the next strings. */
    void clear() noexcept
    {
        if (first_) {
            drop(first_);
            first_->next = nullptr;
        }
        used_ = 0;
    }

  private:
    bool add_chunk(std::size_t text_bytes) noexcept
    {
        const std::size_t least = first_ ? first_->room : 512;
        if (text_bytes > SIZE_MAX / 4)
            return false;
        const std::size_t room = text_bytes < least ? 2 * least : 2 * text_bytes;
        void *memory = std::malloc(sizeof(chunk) + room);
        if (!memory)
            return false;
        first_ = ::new (memory) chunk{first_, room};
        used_ = 0;
        return true;
    }
    void drop(chunk *but) noexcept
    {
        for (chunk *next, *at = first_; at; at = next) {
            next = at->next;
            if (at != but)
                std::free(static_cast<void *>(at));
        }
    }

    chunk *first_ = nullptr; /* the newest, of which used_ bytes are taken */
    std::size_t used_ = 0;
};

} // namespace perfjit::detail

#endif
