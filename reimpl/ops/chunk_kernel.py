"""The fast-weight update by chunks, as four Triton kernels; ``chunk_launch`` says how they run.

With the products of ``decays`` for one chunk of C positions that starts at the state S,

    E = T (v − K₊ S),  T = (I + A diag β)⁻¹        what a write finds missing
    V = β E                                        what it adds (V = v for rules that do not look)
    O = Q₊ S + P V                                 P holds the scale, and so does Q₊
    S ← carry S + K₋ᵀ V

``prepare`` makes T and P of all chunks at once, ``scan`` goes through the chunks. Backward,
``scan_backward`` goes through them in reverse and ``gradients`` finishes all at once:

    G = Pᵀ dO + K₋ dS,  dv = Tᵀ (β G)              (dv = G for rules that do not look)
    dS ← carry dS + Q₊ᵀ dO − K₊ᵀ dv
    dβ = E · dv / β;  dA = −dv Vᵀ, dP = dO Vᵀ, dK₊ = −dv Sᵀ, dQ₊ = dO Sᵀ, dK₋ = V dSᵀ

Decays are summed over the very stretch of positions that they act on, so no exponent exceeds zero.
One decay a key channel splits the pairs (i, j) of a chunk by halves, as ``decays.KeyDecay`` does:
at each level the pair's decays meet at the middle of one block, so a single factor a position
(``_to_middle``) serves it as a row of a second half or as a column of a first half.

Operands of products have one type, that of ``scores``: bfloat16 for bfloat16 inputs, float32 in all
other cases (float16 fits in TF32 exactly and float32 has the range that its states and inverses
need). Sums, states and decays are float32. No product takes a transposed accumulator: what is
needed transposed is loaded so, or is a product of its own. Tiles are zero beyond a sequence's end.
"""

from __future__ import annotations

import triton
import triton.language as tl

NO_DECAY = tl.constexpr(0)
HEAD_DECAY = tl.constexpr(1)
KEY_DECAY = tl.constexpr(2)
FORGOTTEN = tl.constexpr(-128.0)
"""Stands in for log decays below it, −∞ among them; its exponential is 0 in float32."""
TINY = tl.constexpr(1e-30)
"""Stands in for β = 0 where β is divided by; what it adds is lost in rounding."""
SUBSTITUTED = tl.constexpr(16)
"""Size of the triangular blocks that are inverted by substitution."""
RUNTIME = ["length", "sequences"]
"""Integers on whose values no kernel is specialised."""


@triton.jit
def _load(base, rows, columns, stride, end, width):
    """Return a tile ``[rows, columns]``, zero from row ``end`` and column ``width`` on."""
    mask = (rows < end)[:, None] & (columns < width)[None, :]
    return tl.load(base + (rows[:, None] * stride + columns[None, :]), mask=mask, other=0.0)


@triton.jit
def _load_transposed(base, rows, columns, stride, end, width):
    """Return the tile of ``_load`` as ``[columns, rows]``."""
    mask = (columns < width)[:, None] & (rows < end)[None, :]
    return tl.load(base + (columns[:, None] + rows[None, :] * stride), mask=mask, other=0.0)


@triton.jit
def _store(base, tile, rows, columns, stride, end, width):
    """Write a tile ``[rows, columns]`` up to row ``end`` and column ``width``."""
    mask = (rows < end)[:, None] & (columns < width)[None, :]
    pointers = base + (rows[:, None] * stride + columns[None, :])
    tl.store(pointers, tile.to(base.dtype.element_ty), mask=mask)


@triton.jit
def _log(decay):
    decay = decay.to(tl.float32)
    return tl.where(decay < FORGOTTEN, FORGOTTEN, decay)


@triton.jit
def _load_beta(base, t, stride, end):
    beta = tl.load(base + t * stride, mask=t < end, other=0.0).to(tl.float32)
    return tl.where(tl.abs(beta) < TINY, TINY, beta)


@triton.jit
def _load_decay(base, t, stride, end):
    return _log(tl.load(base + t * stride, mask=t < end, other=0.0))


@triton.jit
def _sequence(cu_seqlens, sequence, length, C: tl.constexpr, VARLEN: tl.constexpr):
    """Return a sequence's row in the batch, first position and end, and its first chunk's slot.

    Packed sequences share one row; each may leave one slot unused behind its chunks.
    """
    row, begin = sequence, sequence * 0
    end, slot = begin + length, sequence * ((length + C - 1) // C)
    if VARLEN:
        row = begin
        begin = tl.load(cu_seqlens + sequence).to(tl.int64)
        end = tl.load(cu_seqlens + sequence + 1).to(tl.int64)
        slot = begin // C + sequence
    return row, begin, end, slot


@triton.jit
def _sequence_of(cu_seqlens, slot, sequences, length, C: tl.constexpr, VARLEN: tl.constexpr):
    """Return the last sequence whose first slot is not after ``slot``."""
    low = slot // ((length + C - 1) // C)
    if VARLEN:
        low = slot * 0
        high = low + sequences
        while high - low > 1:
            middle = (low + high) // 2
            is_after = tl.load(cu_seqlens + middle).to(tl.int64) // C + middle > slot
            low = tl.where(is_after, low, middle)
            high = tl.where(is_after, middle, high)
    return low


@triton.jit
def _double(since, until, i, half, AXIS: tl.constexpr):
    """Return sums of log decays over stretches of 2 · ``half`` positions from those of ``half``.

    ``since`` is the sum from a stretch's start through each position, ``until`` that from after
    each position to its end.
    """
    second = tl.expand_dims((i & half) != 0, 1 - AXIS)
    other = tl.expand_dims((i | (2 * half - 1)) - (i & half), 1 - AXIS)
    total = tl.gather(since, tl.broadcast_to(other, since.shape), AXIS)
    return since + tl.where(second, total, 0.0), until + tl.where(second, 0.0, total)


@triton.jit
def _to_middle(since, until, i, half, AXIS: tl.constexpr):
    """Return each position's decays to the middle of its block of 2 · ``half``.

    Rows of the second half decay from the middle through themselves, columns of the first half
    from after themselves to the middle.
    """
    second = tl.expand_dims((i & half) != 0, 1 - AXIS)
    return tl.exp(tl.where(second, since, until))


@triton.jit
def _meets(i, j, half):
    """Whether i is in the second and j in the first half of one block of 2 · ``half``.

    One comparison a pair: what a loop over halves could keep for all pairs takes registers.
    """
    return tl.where((i & half) != 0, i // half, -1) == j // half + 1


@triton.jit
def _inverse(N, C: tl.constexpr, LEVELS: tl.constexpr, PRECISION: tl.constexpr):
    """Return (I + N)⁻¹ for strictly lower triangular N ``[C, C]``.

    Diagonal blocks by substitution, all at once, then twice as large ones from pairs of them. Both
    are stable; a series in powers of N is not.
    """
    B: tl.constexpr = SUBSTITUTED
    n: tl.constexpr = C // B
    block_row = tl.arange(0, n)[:, None, None, None]
    block_column = tl.arange(0, n)[None, None, :, None]
    on_diagonal = block_row == block_column
    blocks = tl.sum(tl.where(on_diagonal, tl.reshape(N, [n, B, n, B]), 0.0), 2)
    row = tl.arange(0, B)[None, :, None]
    column = tl.arange(0, B)[None, None, :]
    X = tl.zeros([n, B, B], tl.float32) + tl.where(row == column, 1.0, 0.0)
    for j in tl.static_range(B - 1):
        below = tl.sum(tl.where(column == j, blocks, 0.0), 2)
        solved = tl.sum(tl.where(row == j, X, 0.0), 1)
        X -= below[:, :, None] * solved[:, None, :]
    X = tl.reshape(tl.where(on_diagonal, X[:, :, None, :], 0.0), [C, C])
    i = tl.arange(0, C)[:, None]
    j = tl.arange(0, C)[None, :]
    for level in tl.static_range(4, LEVELS):
        between = tl.where(_meets(i, j, 1 << level), N, 0.0)
        right = tl.dot(between, X, input_precision=PRECISION)
        X -= tl.dot(X, right, input_precision=PRECISION)
    return X


@triton.jit
def _within(decay, i, j):
    """Return α_{j+1} … α_i ``[i, j]`` for one decay a position, 1 where j ≥ i."""
    later = i[:, None] > j[None, :]
    return tl.exp(tl.cumsum(tl.where(later, decay[:, None], 0.0), 0))


@triton.jit
def _between(decay, i, j):
    """Return the decays from the earlier position through the later one ``[i, j]``, symmetric."""
    rows_later = tl.cumsum(tl.where(i[:, None] > j[None, :], decay[:, None], 0.0), 0)
    columns_later = tl.cumsum(tl.where(i[:, None] < j[None, :], decay[None, :], 0.0), 1)
    return tl.exp(tl.where(i[:, None] > j[None, :], rows_later, columns_later))


@triton.jit
def _crossing(pairs, i, j):
    """Return for each position the sum of the pairs of rows from it on and columns before it."""
    sums = tl.cumsum(pairs, 0, reverse=True)
    return tl.sum(tl.where(i[:, None] > j[None, :], sums, 0.0), 1)


@triton.jit(do_not_specialize=RUNTIME)
def prepare(
    q,
    k,
    beta,
    decay,
    cu_seqlens,
    scores,
    inverse,
    q_since,
    k_since,
    k_until,
    carry,
    scale,
    length,
    sequences,
    heads,
    q_row,
    q_token,
    q_head,
    k_row,
    k_token,
    k_head,
    DK: tl.constexpr,
    C: tl.constexpr,
    LEVELS: tl.constexpr,
    LOOKS: tl.constexpr,
    DECAY: tl.constexpr,
    VARLEN: tl.constexpr,
    PRECISION: tl.constexpr,
    BK: tl.constexpr,
):
    """Write P, and T if the rule looks, ``[slots, heads, C, C]``; one program a slot and head.

    With one decay a key channel also Q₊ (without the scale), K₊, K₋ and carry, which are the same
    for all blocks of values.
    """
    program = tl.program_id(0).to(tl.int64)
    slot = program // heads
    head = program % heads
    sequence = _sequence_of(cu_seqlens, slot, sequences, length, C, VARLEN)
    row, begin, end, first_slot = _sequence(cu_seqlens, sequence, length, C, VARLEN)
    first = begin + (slot - first_slot) * C
    if first >= end:
        return
    i = tl.arange(0, C)
    n = i[:, None]
    m = i[None, :]
    count = tl.minimum(end - first, C).to(tl.int32)
    place = (row * length + first) * heads + head
    q += row * q_row + first * q_token + head * q_head
    k += row * k_row + first * k_token + head * k_head
    operand: tl.constexpr = scores.dtype.element_ty
    keys = tl.zeros([C, C], tl.float32)
    queries = tl.zeros([C, C], tl.float32)
    for start in range(0, DK, BK):
        d = start + tl.arange(0, BK)
        k_rows = _load(k, i, d, k_token, count, DK)
        q_rows = _load(q, i, d, q_token, count, DK)
        k_columns = _load_transposed(k, i, d, k_token, count, DK)
        if DECAY == KEY_DECAY:
            stride = heads * DK
            log = _log(_load(decay + place * DK, i, d, stride, count, DK))
            tl.store(carry + program * DK + d, tl.exp(tl.sum(log, 0)), mask=d < DK)
            own = tl.sum(q_rows.to(tl.float32) * k_rows.to(tl.float32), 1)
            queries += tl.where(n == m, own[:, None], 0.0)
            since, until = log, tl.zeros([C, BK], tl.float32)
            since_columns = _log(_load_transposed(decay + place * DK, i, d, stride, count, DK))
            until_columns = tl.zeros([BK, C], tl.float32)
            for level in range(0, LEVELS):
                half = 1 << level
                columns = k_columns * _to_middle(since_columns, until_columns, i, half, 1)
                columns = columns.to(operand)
                factor = _to_middle(since, until, i, half, 0)
                meets = _meets(n, m, half)
                rows = (q_rows * factor).to(operand)
                product = tl.dot(rows, columns, input_precision=PRECISION)
                queries += tl.where(meets, product, 0.0)
                if LOOKS:
                    rows = (k_rows * factor).to(operand)
                    product = tl.dot(rows, columns, input_precision=PRECISION)
                    keys += tl.where(meets, product, 0.0)
                since, until = _double(since, until, i, half, 0)
                since_columns, until_columns = _double(since_columns, until_columns, i, half, 1)
            _store(q_since + place * DK, q_rows * tl.exp(since), i, d, stride, count, DK)
            if LOOKS:
                _store(k_since + place * DK, k_rows * tl.exp(since), i, d, stride, count, DK)
            _store(k_until + place * DK, k_rows * tl.exp(until), i, d, stride, count, DK)
        else:
            columns = k_columns.to(operand)
            if LOOKS:
                keys = tl.dot(k_rows.to(operand), columns, keys, input_precision=PRECISION)
            queries = tl.dot(q_rows.to(operand), columns, queries, input_precision=PRECISION)
    if DECAY == HEAD_DECAY:
        within = _within(_load_decay(decay + place, i, heads, count), i, i)
        keys *= within
        queries *= within
    P = tl.where(n >= m, queries * scale, 0.0)
    _store(scores + program * C * C, P, i, i, C, C, C)
    if LOOKS:
        b = _load_beta(beta + place, i, heads, count)
        N = tl.where(n > m, keys * b[None, :], 0.0)
        _store(inverse + program * C * C, _inverse(N, C, LEVELS, PRECISION), i, i, C, C, C)


@triton.jit(do_not_specialize=RUNTIME)
def scan(
    q,
    k,
    k_writes,
    v,
    beta,
    decay,
    carry,
    initial,
    cu_seqlens,
    scores,
    inverse,
    output,
    final,
    errors,
    states,
    scale,
    length,
    heads,
    q_row,
    q_token,
    q_head,
    k_row,
    k_token,
    k_head,
    k_writes_row,
    k_writes_token,
    k_writes_head,
    v_row,
    v_token,
    v_head,
    DK: tl.constexpr,
    DV: tl.constexpr,
    C: tl.constexpr,
    LEVELS: tl.constexpr,
    LOOKS: tl.constexpr,
    DECAY: tl.constexpr,
    VARLEN: tl.constexpr,
    STARTS: tl.constexpr,
    KEEP: tl.constexpr,
    PRECISION: tl.constexpr,
    BK: tl.constexpr,
    BV: tl.constexpr,
):
    """Write outputs and last states; if ``KEEP``, errors and the state each chunk starts with.

    One program a sequence, head and block of ``BV`` values.
    """
    program = tl.program_id(0).to(tl.int64)
    values: tl.constexpr = (DV + BV - 1) // BV
    j = (program % values) * BV + tl.arange(0, BV)
    head = program // values % heads
    sequence = program // values // heads
    row, begin, end, slot = _sequence(cu_seqlens, sequence, length, C, VARLEN)
    i = tl.arange(0, C)
    d = tl.arange(0, BK)
    q += row * q_row + head * q_head
    k += row * k_row + head * k_head
    k_writes += row * k_writes_row + head * k_writes_head
    v += row * v_row + head * v_head
    operand: tl.constexpr = scores.dtype.element_ty
    state_place = (sequence * heads + head) * DK * DV
    S = tl.zeros([BK, BV], tl.float32)
    if STARTS:
        S += _load(initial + state_place, d, j, DV, DK, DV)
    for first in range(begin, end, C):
        count = tl.minimum(end - first, C).to(tl.int32)
        place = (row * length + first) * heads + head
        tile = slot * heads + head
        slot += 1
        state = S.to(operand)
        if KEEP:
            _store(states + tile * DK * DV, state, d, j, DV, DK, DV)
        if DECAY == HEAD_DECAY:
            log = _load_decay(decay + place, i, heads, count)
            since = tl.exp(tl.cumsum(log, 0))
        w = _load(v + first * v_token, i, j, v_token, count, DV).to(tl.float32)
        if LOOKS:
            k_rows = _load(k + first * k_token, i, d, k_token, count, DK).to(operand)
            y = tl.dot(k_rows, state, input_precision=PRECISION)
            if DECAY == HEAD_DECAY:
                y *= since[:, None]
            T = _load(inverse + tile * C * C, i, i, C, C, C)
            w = tl.dot(T, (w - y).to(operand), input_precision=PRECISION)
            if KEEP:
                _store(errors + place * DV, w, i, j, heads * DV, count, DV)
            w *= _load_beta(beta + place, i, heads, count)[:, None]
        q_rows = _load(q + first * q_token, i, d, q_token, count, DK).to(operand)
        o = tl.dot(q_rows, state, input_precision=PRECISION) * scale
        if DECAY == HEAD_DECAY:
            o *= since[:, None]
        P = _load(scores + tile * C * C, i, i, C, C, C)
        o = tl.dot(P, w.to(operand), o, input_precision=PRECISION)
        _store(output + place * DV, o, i, j, heads * DV, count, DV)
        if DECAY == HEAD_DECAY:
            later = _load_decay(decay + place, i + 1, heads, count)
            w *= tl.exp(tl.cumsum(later, 0, reverse=True))[:, None]
            S *= tl.exp(tl.sum(log, 0))
        if DECAY == KEY_DECAY:
            S *= tl.load(carry + tile * DK + d, mask=d < DK, other=0.0)[:, None]
        columns = _load_transposed(
            k_writes + first * k_writes_token, i, d, k_writes_token, count, DK
        )
        S = tl.dot(columns.to(operand), w.to(operand), S, input_precision=PRECISION)
    _store(final + state_place, S, d, j, DV, DK, DV)


@triton.jit(do_not_specialize=RUNTIME)
def scan_backward(
    q,
    k,
    k_writes,
    beta,
    decay,
    carry,
    cu_seqlens,
    scores,
    inverse,
    d_output,
    d_final,
    dv,
    d_initial,
    d_states,
    scale,
    length,
    heads,
    q_row,
    q_token,
    q_head,
    k_row,
    k_token,
    k_head,
    k_writes_row,
    k_writes_token,
    k_writes_head,
    DK: tl.constexpr,
    DV: tl.constexpr,
    C: tl.constexpr,
    LEVELS: tl.constexpr,
    LOOKS: tl.constexpr,
    DECAY: tl.constexpr,
    VARLEN: tl.constexpr,
    ENDS: tl.constexpr,
    PRECISION: tl.constexpr,
    BK: tl.constexpr,
    BV: tl.constexpr,
):
    """Write dv, the gradient of the state at each chunk's end, and that of the first state.

    One program a sequence, head and block of ``BV`` values.
    """
    program = tl.program_id(0).to(tl.int64)
    values: tl.constexpr = (DV + BV - 1) // BV
    j = (program % values) * BV + tl.arange(0, BV)
    head = program // values % heads
    sequence = program // values // heads
    row, begin, end, slot = _sequence(cu_seqlens, sequence, length, C, VARLEN)
    i = tl.arange(0, C)
    d = tl.arange(0, BK)
    q += row * q_row + head * q_head
    k += row * k_row + head * k_head
    k_writes += row * k_writes_row + head * k_writes_head
    operand: tl.constexpr = scores.dtype.element_ty
    state_place = (sequence * heads + head) * DK * DV
    dS = tl.zeros([BK, BV], tl.float32)
    if ENDS:
        dS += _load(d_final + state_place, d, j, DV, DK, DV)
    chunks = (end - begin + C - 1) // C
    for back in range(0, chunks):
        chunk = chunks - 1 - back
        first = begin + chunk * C
        count = tl.minimum(end - first, C).to(tl.int32)
        place = (row * length + first) * heads + head
        tile = (slot + chunk) * heads + head
        d_state = dS.to(operand)
        _store(d_states + tile * DK * DV, d_state, d, j, DV, DK, DV)
        k_rows = _load(k_writes + first * k_writes_token, i, d, k_writes_token, count, DK)
        G = tl.dot(k_rows.to(operand), d_state, input_precision=PRECISION)
        d_o = _load(d_output + place * DV, i, j, heads * DV, count, DV)
        if DECAY == HEAD_DECAY:
            log = _load_decay(decay + place, i, heads, count)
            later = _load_decay(decay + place, i + 1, heads, count)
            G *= tl.exp(tl.cumsum(later, 0, reverse=True))[:, None]
            since = tl.exp(tl.cumsum(log, 0))
            dS *= tl.exp(tl.sum(log, 0))
        if DECAY == KEY_DECAY:
            dS *= tl.load(carry + tile * DK + d, mask=d < DK, other=0.0)[:, None]
        P = _load_transposed(scores + tile * C * C, i, i, C, C, C)
        G = tl.dot(P, d_o.to(operand), G, input_precision=PRECISION)
        if LOOKS:
            G *= _load_beta(beta + place, i, heads, count)[:, None]
            T = _load_transposed(inverse + tile * C * C, i, i, C, C, C)
            G = tl.dot(T, G.to(operand), input_precision=PRECISION)
        _store(dv + place * DV, G, i, j, heads * DV, count, DV)
        d_q = d_o.to(tl.float32) * scale
        if DECAY == HEAD_DECAY:
            d_q *= since[:, None]
        columns = _load_transposed(q + first * q_token, i, d, q_token, count, DK)
        dS = tl.dot(columns.to(operand), d_q.to(operand), dS, input_precision=PRECISION)
        if LOOKS:
            if DECAY == HEAD_DECAY:
                G *= since[:, None]
            columns = _load_transposed(k + first * k_token, i, d, k_token, count, DK)
            dS = tl.dot(columns.to(operand), (-G).to(operand), dS, input_precision=PRECISION)
    _store(d_initial + state_place, dS, d, j, DV, DK, DV)


@triton.jit
def _add_crossing(total, y, n, m, half, operand: tl.constexpr):
    """Add for each position the terms y ``[C, d]`` of the stretches to a middle that cross it.

    In a second half these are the terms from the position on, in a first half those before it. y
    goes in as a rounded part and what is left of it, so that sums are precise in any type.
    """
    second = (n & half) != 0
    low = tl.where(second, n, n & -half)
    high = tl.where(second, n | (half - 1), n - 1)
    ones = tl.where((m >= low) & (m <= high), 1.0, 0.0).to(operand)
    rounded = y.to(operand)
    total = tl.dot(ones, rounded, total, input_precision="tf32x3")
    if operand != tl.float32:
        total = tl.dot(ones, (y - rounded).to(operand), total)
    return total


@triton.jit
def _sum_before(x, i):
    """Return the sums ``[C, d]`` over the positions before each one, without a difference."""
    before = tl.broadcast_to(tl.maximum(i - 1, 0)[:, None], x.shape)
    return tl.where(i[:, None] > 0, tl.gather(tl.cumsum(x, 0), before, 0), 0.0)


@triton.jit
def _pairs_by_halves(
    q_rows,
    k_rows,
    log,
    d_queries,
    d_queries_transposed,
    d_keys,
    i,
    LEVELS: tl.constexpr,
    LOOKS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Return the gradients of queries, keys and log decays by all pairs of two positions.

    Also the sums of log decays since the chunk's start and until its end, ``[C, d]`` all of them.
    """
    operand: tl.constexpr = d_queries.dtype
    n, m = i[:, None], i[None, :]
    since, until = log, tl.zeros_like(log)
    d_q, d_k, d_log = tl.zeros_like(log), tl.zeros_like(log), tl.zeros_like(log)
    for level in range(0, LEVELS):
        half = 1 << level
        factor = _to_middle(since, until, i, half, 0)
        k_level = (k_rows * factor).to(operand)
        pair = tl.where(_meets(n, m, half), d_queries, 0.0)
        part_q = tl.dot(pair, k_level, input_precision=PRECISION) * factor
        pair = tl.where(_meets(m, n, half), d_queries_transposed, 0.0)
        part_k = tl.dot(pair, (q_rows * factor).to(operand), input_precision=PRECISION)
        if LOOKS:
            pair = tl.where(n // half == (m // half) ^ 1, d_keys, 0.0)
            part_k = tl.dot(pair, k_level, part_k, input_precision=PRECISION)
        part_k *= factor
        d_q += part_q
        d_k += part_k
        d_log = _add_crossing(d_log, part_q * q_rows + part_k * k_rows, n, m, half, operand)
        since, until = _double(since, until, i, half, 0)
    return d_q, d_k, d_log, since, until


@triton.jit(do_not_specialize=RUNTIME)
def gradients(
    q,
    k,
    beta,
    decay,
    cu_seqlens,
    scores,
    writes,
    states,
    d_output,
    dv,
    d_states,
    dq,
    dk,
    d_beta,
    d_decay,
    scale,
    length,
    sequences,
    heads,
    q_row,
    q_token,
    q_head,
    k_row,
    k_token,
    k_head,
    writes_row,
    writes_token,
    writes_head,
    DK: tl.constexpr,
    DV: tl.constexpr,
    C: tl.constexpr,
    LEVELS: tl.constexpr,
    LOOKS: tl.constexpr,
    DECAY: tl.constexpr,
    VARLEN: tl.constexpr,
    PRECISION: tl.constexpr,
    BK: tl.constexpr,
    BV: tl.constexpr,
):
    """Write dq, dk, dβ and the gradient of the log decay; one program a slot and head.

    ``writes`` is E if the rule looks, else v. Pairs that two keys make are kept in one symmetric
    matrix, whose rows serve both as readers and as what is read.
    """
    program = tl.program_id(0).to(tl.int64)
    slot = program // heads
    head = program % heads
    sequence = _sequence_of(cu_seqlens, slot, sequences, length, C, VARLEN)
    row, begin, end, first_slot = _sequence(cu_seqlens, sequence, length, C, VARLEN)
    first = begin + (slot - first_slot) * C
    if first >= end:
        return
    i = tl.arange(0, C)
    n = i[:, None]
    m = i[None, :]
    count = tl.minimum(end - first, C).to(tl.int32)
    place = (row * length + first) * heads + head
    q += row * q_row + first * q_token + head * q_head
    k += row * k_row + first * k_token + head * k_head
    writes += row * writes_row + first * writes_token + head * writes_head
    d_output += place * DV
    dv += place * DV
    if DECAY == KEY_DECAY:
        decay += place * DK
    if DECAY == HEAD_DECAY:
        decay += place
    stride = heads * DV
    operand: tl.constexpr = scores.dtype.element_ty
    if DECAY == HEAD_DECAY:
        log = _load_decay(decay, i, heads, count)
        later = _load_decay(decay, i + 1, heads, count)
        since = tl.exp(tl.cumsum(log, 0))
        until = tl.exp(tl.cumsum(later, 0, reverse=True))
        between = _between(log, i, i)
        d_head_log = tl.zeros([C], tl.float32)
        d_since = tl.zeros([C], tl.float32)
        d_until = tl.zeros([C], tl.float32)
        d_carry = tl.zeros([BV], tl.float32)
    if LOOKS:
        b = _load_beta(beta + place, i, heads, count)
        d_b = tl.zeros([C], tl.float32)
        d_keys = tl.zeros([C, C], tl.float32)
        mirrored = tl.zeros([C, C], tl.float32)
        for start in range(0, DV, BV):
            j = start + tl.arange(0, BV)
            w = _load(writes, i, j, writes_token, count, DV)
            w_columns = _load_transposed(writes, i, j, writes_token, count, DV)
            x = _load(dv, i, j, stride, count, DV)
            x_columns = _load_transposed(dv, i, j, stride, count, DV)
            d_b += tl.sum(w.to(tl.float32) * x.to(tl.float32), 1)
            w = (w * b[:, None]).to(operand)
            w_columns = (w_columns * b[None, :]).to(operand)
            d_keys = tl.dot(x, w_columns, d_keys, input_precision=PRECISION)
            mirrored = tl.dot(w, x_columns, mirrored, input_precision=PRECISION)
        tl.store(d_beta + place + i * heads, d_b / b, mask=i < count)
        d_keys = tl.where(n > m, -d_keys, tl.where(n < m, -mirrored, 0.0))
        if DECAY == HEAD_DECAY:
            keys = tl.zeros([C, C], tl.float32)
            for start in range(0, DK, BK):
                d = start + tl.arange(0, BK)
                k_rows = _load(k, i, d, k_token, count, DK).to(operand)
                k_columns = _load_transposed(k, i, d, k_token, count, DK).to(operand)
                keys = tl.dot(k_rows, k_columns, keys, input_precision=PRECISION)
            d_keys *= between
            d_head_log += _crossing(tl.where(n > m, d_keys * keys, 0.0), i, i)
        d_keys = d_keys.to(operand)
    d_queries = tl.zeros([C, C], tl.float32)
    d_queries_transposed = tl.zeros([C, C], tl.float32)
    for start in range(0, DV, BV):
        j = start + tl.arange(0, BV)
        w = _load(writes, i, j, writes_token, count, DV)
        w_columns = _load_transposed(writes, i, j, writes_token, count, DV)
        if LOOKS:
            w = w * b[:, None]
            w_columns = w_columns * b[None, :]
        d_o = _load(d_output, i, j, stride, count, DV).to(operand)
        d_o_columns = _load_transposed(d_output, i, j, stride, count, DV).to(operand)
        d_queries = tl.dot(d_o, w_columns.to(operand), d_queries, input_precision=PRECISION)
        d_queries_transposed = tl.dot(
            w.to(operand), d_o_columns, d_queries_transposed, input_precision=PRECISION
        )
    d_queries = tl.where(n >= m, d_queries, 0.0)
    d_queries_transposed = tl.where(n <= m, d_queries_transposed, 0.0)
    if DECAY == HEAD_DECAY:
        P = _load(scores + program * C * C, i, i, C, C, C).to(tl.float32)
        d_head_log += _crossing(d_queries * P, i, i)
        d_queries *= between
        d_queries_transposed *= between
    if DECAY == KEY_DECAY:
        own = tl.sum(tl.where(n == m, d_queries, 0.0), 1)
    d_queries = d_queries.to(operand)
    d_queries_transposed = d_queries_transposed.to(operand)
    if not LOOKS:
        d_keys = d_queries
    for begin_key in range(0, DK, BK):
        d = begin_key + tl.arange(0, BK)
        d_reads = tl.zeros([C, BK], tl.float32)
        d_looks = tl.zeros([C, BK], tl.float32)
        d_writes = tl.zeros([C, BK], tl.float32)
        if DECAY == KEY_DECAY:
            across = tl.zeros([BK], tl.float32)
        for start in range(0, DV, BV):
            j = start + tl.arange(0, BV)
            state = _load_transposed(states + program * DK * DV, d, j, DV, DK, DV)
            d_state = _load_transposed(d_states + program * DK * DV, d, j, DV, DK, DV)
            w = _load(writes, i, j, writes_token, count, DV)
            if LOOKS:
                w = w * b[:, None]
            d_o = _load(d_output, i, j, stride, count, DV).to(operand)
            d_reads = tl.dot(d_o, state, d_reads, input_precision=PRECISION)
            d_writes = tl.dot(w.to(operand), d_state, d_writes, input_precision=PRECISION)
            if LOOKS:
                x = -_load(dv, i, j, stride, count, DV).to(operand)
                d_looks = tl.dot(x, state, d_looks, input_precision=PRECISION)
            if DECAY == HEAD_DECAY:
                d_carry += tl.sum(state.to(tl.float32) * d_state.to(tl.float32), 1)
            if DECAY == KEY_DECAY:
                across += tl.sum(state.to(tl.float32) * d_state.to(tl.float32), 0)
        k_rows = _load(k, i, d, k_token, count, DK).to(tl.float32)
        q_rows = _load(q, i, d, q_token, count, DK).to(tl.float32) * scale
        if DECAY == HEAD_DECAY:
            d_reads *= since[:, None]
            d_looks *= since[:, None]
            d_writes *= until[:, None]
            d_since += tl.sum(d_reads * q_rows, 1)
            d_until += tl.sum(d_writes * k_rows, 1)
            if LOOKS:
                d_since += tl.sum(d_looks * k_rows, 1)
        if DECAY == KEY_DECAY:
            log = _log(_load(decay, i, d, heads * DK, count, DK))
            d_q, d_k, d_log, since, until = _pairs_by_halves(
                q_rows,
                k_rows,
                log,
                d_queries,
                d_queries_transposed,
                d_keys,
                i,
                LEVELS,
                LOOKS,
                PRECISION,
            )
            d_q += own[:, None] * k_rows
            d_k += own[:, None] * q_rows
            d_log += (tl.exp(tl.sum(log, 0)) * across)[None, :]
            d_reads *= tl.exp(since)
            d_looks *= tl.exp(since)
            d_writes *= tl.exp(until)
            d_log += tl.cumsum(d_reads * q_rows + d_looks * k_rows, 0, reverse=True)
            d_log += _sum_before(d_writes * k_rows, i)
            d_reads += d_q
            d_writes += d_k
            _store(d_decay + place * DK, d_log, i, d, heads * DK, count, DK)
        else:
            k_rows = k_rows.to(operand)
            d_reads = tl.dot(d_queries, k_rows, d_reads, input_precision=PRECISION)
            q_rows = q_rows.to(operand)
            d_writes = tl.dot(d_queries_transposed, q_rows, d_writes, input_precision=PRECISION)
            if LOOKS:
                d_writes = tl.dot(d_keys, k_rows, d_writes, input_precision=PRECISION)
        _store(dq + place * DK, d_reads * scale, i, d, heads * DK, count, DK)
        _store(dk + place * DK, d_writes + d_looks, i, d, heads * DK, count, DK)
    if DECAY == HEAD_DECAY:
        d_head_log += tl.sum(tl.where(n <= m, d_since[None, :], 0.0), 1)
        d_head_log += tl.sum(tl.where(n > m, d_until[None, :], 0.0), 1)
        d_head_log += tl.sum(d_carry, 0) * tl.exp(tl.sum(log, 0))
        tl.store(d_decay + place + i * heads, d_head_log, mask=i < count)
