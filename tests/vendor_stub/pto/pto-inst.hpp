// Declarations only, for -fsyntax-only: the names and signatures that the instruction documents give.
#pragma once
#include <cstddef>
#include <cstdint>

#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __biasbuf__
#define __fbuf__
#define __global__
#define AICORE
#define PTO_INLINE inline

#define STUB_NUMBER(name, holds)                                                                                       \
    struct name {                                                                                                      \
        holds bits;                                                                                                    \
        name() = default;                                                                                              \
        name(float);                                                                                                   \
        operator float() const;                                                                                        \
    };
STUB_NUMBER(half, uint16_t)
STUB_NUMBER(bfloat16_t, uint16_t)
STUB_NUMBER(float8_e4m3_t, uint8_t)
STUB_NUMBER(float8_e5m2_t, uint8_t)
STUB_NUMBER(hifloat8_t, uint8_t)

enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_ALL, PIPE_MTE4, PIPE_MTE5, PIPE_V2, PIPE_FIX };
enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };
enum cache_line_t { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum mem_dsb_t { DSB_ALL, DSB_DDR };
void set_flag(pipe_t source, pipe_t sink, event_t id);
void wait_flag(pipe_t source, pipe_t sink, event_t id);
void pipe_barrier(pipe_t pipe);
void dcci(void *address, cache_line_t what);
void dsb(mem_dsb_t where);
int64_t get_block_idx();
int64_t get_block_num();

// The launch, as the test writes it for a compiler that does not know <<<..>>>.
template <typename... Parameters, typename... Arguments>
void stub_launch(void (*)(Parameters...), uint32_t, std::nullptr_t, void *, Arguments...);
template <typename... Parameters, typename... Arguments>
void stub_launch(void (*)(Parameters...), uint32_t, uint32_t, void *, Arguments...);

namespace pto {
enum class TileType { Vec, Mat, Left, Right, Acc, Bias, Scaling };
enum class BLayout { RowMajor, ColMajor };
enum class SLayout { NoneBox, RowMajor, ColMajor };
enum class PadValue { Null, Zero, Max, Min };
enum class CompactMode { Null, Normal, RowPlusOne };
enum class Layout { ND, DN, NZ };
enum class GlobalTensorDim { DIM_0, DIM_1, DIM_2, DIM_3, DIM_4 };
enum class Coalesce : uint8_t { Row = 0, Elem = 1 };
enum class ScatterAtomicOp : uint8_t { None = 0, Add = 1, Max = 2, Min = 3 };
enum class ScatterOOB : uint8_t { Undefined = 0, Skip = 1, Clamp = 2, Wrap = 3 };
enum class GatherOOB : uint8_t { Undefined = 0, Clamp = 1, Wrap = 2, Zero = 3 };
enum class ScatterConflict : uint8_t { Last = 0, Default = 1 };
enum class AtomicType { AtomicNone, AtomicAdd, AtomicMax, AtomicMin };
enum class RoundMode { CAST_NONE, CAST_RINT, CAST_ROUND, CAST_FLOOR, CAST_CEIL, CAST_TRUNC, CAST_ODD };
enum class CmpMode { EQ, NE, LT, LE, GT, GE };
struct RecordEvent {};

template <TileType Loc_, typename Element, int Rows_, int Cols_, BLayout BFractal = BLayout::RowMajor,
          int RowMask = Rows_, int ColMask = Cols_, SLayout SFractal = SLayout::NoneBox, int SFractalSize = 512,
          PadValue Pad = PadValue::Null, CompactMode Compact = CompactMode::Null>
struct Tile {
    static_assert(RowMask <= Rows_ && ColMask <= Cols_, "valid extents within the tile");
    using DType = Element;
    static constexpr TileType Loc = Loc_;
    static constexpr int Rows = Rows_, Cols = Cols_, ValidRow = RowMask, ValidCol = ColMask;
    template <typename... Extents>
    explicit Tile(Extents...)
    {
        static_assert(sizeof...(Extents) == (RowMask < 0) + (ColMask < 0), "one value for each dynamic extent");
    }
    int64_t GetValidRow() const;
    int64_t GetValidCol() const;
    void SetValidShape(int64_t rows, int64_t cols);
};

template <int64_t... Numbers>
struct Five {
    static_assert(sizeof...(Numbers) == 5, "five dimensions");
    template <typename... Given>
    explicit Five(Given...)
    {
        static_assert(sizeof...(Given) == ((Numbers < 0) + ...), "one value for each dynamic number");
    }
};
template <int64_t... Numbers>
struct Shape : Five<Numbers...> {
    using Five<Numbers...>::Five;
};
template <int64_t... Numbers>
struct Stride : Five<Numbers...> {
    using Five<Numbers...>::Five;
};

template <typename Element, typename Shape_, typename Stride_, Layout Layout_ = Layout::ND>
struct GlobalTensor {
    using RawDType = Element;
    using DType = __gm__ Element;
    GlobalTensor() = default;
    explicit GlobalTensor(__gm__ Element *data);
    GlobalTensor(__gm__ Element *data, const Shape_ &shape, const Stride_ &stride);
    __gm__ Element *data() const;
    int64_t GetShape(GlobalTensorDim dim) const;
    int64_t GetStride(GlobalTensorDim dim) const;
};

template <typename T>
RecordEvent TASSIGN(T &tile, uint64_t address);
template <typename T, typename G>
RecordEvent TLOAD(T &tile, G &tensor);
template <typename T, typename G, AtomicType atomic = AtomicType::AtomicNone>
RecordEvent TSTORE(G &tensor, T &tile);
template <typename G, typename T>
RecordEvent TSTORE(G &tensor, T &tile, uint64_t quant);
template <typename G, typename T, typename F>
RecordEvent TSTORE_FP(G &tensor, T &tile, F &scaling);

#ifdef STUB_CPU
template <typename G, typename T, typename I>
RecordEvent MSCATTER(G &table, T &source, I &index);
template <typename T, typename G, typename I>
RecordEvent MGATHER(T &destination, G &table, I &index);
#else
#ifdef STUB_A2A3
template <Coalesce Mode = Coalesce::Row, ScatterAtomicOp Atomic = ScatterAtomicOp::None,
          ScatterOOB Oob = ScatterOOB::Undefined, typename G, typename T, typename I>
#else
template <Coalesce Mode = Coalesce::Row, ScatterAtomicOp Atomic = ScatterAtomicOp::None,
          ScatterOOB Oob = ScatterOOB::Undefined, ScatterConflict Conflict = ScatterConflict::Last, typename G,
          typename T, typename I>
#endif
RecordEvent MSCATTER(G &table, T &source, I &index);
template <Coalesce Mode = Coalesce::Row, GatherOOB Oob = GatherOOB::Undefined, typename T, typename G, typename I>
RecordEvent MGATHER(T &destination, G &table, I &index);
#endif

#define STUB_BINARY(name)                                                                                              \
    template <typename D, typename A, typename B>                                                                      \
    RecordEvent name(D &destination, A &a, B &b);
#define STUB_UNARY(name)                                                                                               \
    template <typename D, typename A>                                                                                  \
    RecordEvent name(D &destination, A &a);
#define STUB_SCALAR(name)                                                                                              \
    template <typename D, typename A>                                                                                  \
    RecordEvent name(D &destination, A &a, typename D::DType scalar);
STUB_BINARY(TADD)
STUB_BINARY(TSUB)
STUB_BINARY(TMUL)
STUB_BINARY(TDIV)
STUB_BINARY(TMAX)
STUB_BINARY(TMIN)
STUB_SCALAR(TADDS)
STUB_SCALAR(TSUBS)
STUB_SCALAR(TMULS)
STUB_SCALAR(TDIVS)
STUB_SCALAR(TMAXS)
STUB_SCALAR(TMINS)
STUB_UNARY(TABS)
STUB_UNARY(TNEG)
STUB_UNARY(TEXP)
STUB_UNARY(TLOG)
STUB_UNARY(TSQRT)
STUB_UNARY(TMOV)
STUB_UNARY(TCOLSUM)
STUB_UNARY(TCOLMAX)
STUB_BINARY(TROWSUM)
STUB_BINARY(TROWMAX)
STUB_BINARY(TSCATTER)
template <typename D>
RecordEvent TEXPANDS(D &destination, typename D::DType scalar);
template <typename D, typename A>
RecordEvent TCVT(D &destination, A &a, RoundMode mode);
template <typename D, typename A, typename B>
RecordEvent TCMP(D &destination, A &a, B &b, CmpMode mode);
template <typename D, typename M, typename A, typename B>
RecordEvent TSEL(D &destination, M &mask, A &a, B &b);
template <typename D, typename M, typename A, typename B, typename T>
RecordEvent TSEL(D &destination, M &mask, A &a, B &b, T &temporary);
template <typename D, typename T, int descending>
RecordEvent TCI(D &destination, T first);
} // namespace pto
