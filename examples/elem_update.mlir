// MLIR's generic form, as every MLIR tool writes it: here of elem_update, elements named one by one.
"builtin.module"() ({
  "func.func"() <{sym_name = "elem_update", function_type = (!pto.ptr<i32, gm>, !pto.ptr<i32, gm>, !pto.ptr<i32, gm>) -> ()}> ({
  ^bb0(%table: !pto.ptr<i32, gm>, %values: !pto.ptr<i32, gm>, %places: !pto.ptr<i32, gm>):
    %c0 = "arith.constant"() <{value = 0 : index}> : () -> index
    %c1 = "arith.constant"() <{value = 1 : index}> : () -> index
    %c4 = "arith.constant"() <{value = 4 : index}> : () -> index
    %c8 = "arith.constant"() <{value = 8 : index}> : () -> index
    %c256 = "arith.constant"() <{value = 256 : index}> : () -> index
    %tv = "pto.make_tensor_view"(%table, %c1, %c256, %c256, %c1) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!pto.ptr<i32, gm>, index, index, index, index) -> !pto.tensor_view<1x256xi32>
    %vv = "pto.make_tensor_view"(%values, %c4, %c8, %c8, %c1) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!pto.ptr<i32, gm>, index, index, index, index) -> !pto.tensor_view<4x8xi32>
    %pv = "pto.make_tensor_view"(%places, %c4, %c8, %c8, %c1) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!pto.ptr<i32, gm>, index, index, index, index) -> !pto.tensor_view<4x8xi32>
    %t = "pto.partition_view"(%tv, %c0, %c0, %c1, %c256) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!pto.tensor_view<1x256xi32>, index, index, index, index) -> !pto.partition_tensor_view<1x256xi32>
    %v = "pto.partition_view"(%vv, %c0, %c0, %c4, %c8) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!pto.tensor_view<4x8xi32>, index, index, index, index) -> !pto.partition_tensor_view<4x8xi32>
    %p = "pto.partition_view"(%pv, %c0, %c0, %c4, %c8) <{operandSegmentSizes = array<i32: 1, 2, 2>}> : (!pto.tensor_view<4x8xi32>, index, index, index, index) -> !pto.partition_tensor_view<4x8xi32>
    %value = "pto.alloc_tile"() <{operandSegmentSizes = array<i32: 0, 0, 0>}> : () -> !pto.tile_buf<vec, 4x8xi32>
    %place = "pto.alloc_tile"() <{operandSegmentSizes = array<i32: 0, 0, 0>}> : () -> !pto.tile_buf<vec, 4x8xi32>
    "pto.tload"(%v, %value) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>}> : (!pto.partition_tensor_view<4x8xi32>, !pto.tile_buf<vec, 4x8xi32>) -> ()
    "pto.tload"(%p, %place) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>}> : (!pto.partition_tensor_view<4x8xi32>, !pto.tile_buf<vec, 4x8xi32>) -> ()
    "pto.set_flag"() <{src_pipe = #pto.pipe<PIPE_MTE2>, dst_pipe = #pto.pipe<PIPE_V>, event_id = #pto.event<EVENT_ID0>}> : () -> ()
    "pto.wait_flag"() <{src_pipe = #pto.pipe<PIPE_MTE2>, dst_pipe = #pto.pipe<PIPE_V>, event_id = #pto.event<EVENT_ID0>}> : () -> ()
    "pto.mscatter"(%value, %place, %t) <{coalesce = #pto<coalesce elem>, scatterAtomicOp = #pto<scatter_atomic_op add>, scatterOob = #pto<scatter_oob wrap>}> : (!pto.tile_buf<vec, 4x8xi32>, !pto.tile_buf<vec, 4x8xi32>, !pto.partition_tensor_view<1x256xi32>) -> ()
    "pto.barrier"() <{pipe = #pto.pipe<PIPE_ALL>}> : () -> ()
    "pto.dcci"() : () -> ()
    "pto.dsb"() : () -> ()
    "func.return"() : () -> ()
  }) {pto.kernel_kind = #pto.kernel_kind<vector>} : () -> ()
}) : () -> ()
