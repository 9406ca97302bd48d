/* What mir-gen.c includes: a function's frame, as target_make_prolog_epilog makes it. */

static void log_func (gen_ctx_t gen_ctx, MIR_func_t func, size_t bytes) {
  struct jitdump_slot slots[JITDUMP_FRAME_SLOTS_MAX];
  uint64_t epilogue;
  struct jitdump_frame frame = {.kind = keep_fp_p ? JITDUMP_FRAME_POINTER : JITDUMP_FRAME_STACK,
                                .flags = keep_fp_p ? JITDUMP_FRAME_RED_ZONE : 0,
                                .slots = slots, .epilogues = &epilogue, .epilogue_count = 1};
  size_t spilled = 8 * func_stack_slots_num, args = func->vararg_p ? reg_save_area_size : 0;

  for (MIR_reg_t reg = 0; reg <= R15_HARD_REG; reg++)
    if (!target_call_used_hard_reg_p (reg, MIR_T_UNDEF) && bitmap_bit_p (func_used_hard_regs, reg))
      slots[frame.slot_count++].reg = jitdump_dwarf_register (JITDUMP_X86_64, reg);
  if (!keep_fp_p) spilled = (spilled + 15) / 16 * 16;
  frame.stack_bytes = (spilled + 8 * frame.slot_count + 15) / 16 * 16 + args + 8;
  for (size_t i = 0; i < frame.slot_count; i++)
    slots[i].offset = 8 * i + (keep_fp_p ? 8 - (int32_t) frame.stack_bytes : (int32_t) spilled);
  /* Variable arguments are stored first: rdi to r9 in 5 or 8 bytes of code each, xmm0 to xmm7 in 6 or 9. */
  if (args != 0) frame.slots_at = 17;
  for (size_t i = 0; i < args; i += i < 48 ? 8 : 16)
    frame.slots_at += (i < 48 ? 5 : 6) + (frame.stack_bytes - 8 - args + i > 127 ? 3 : 0);
  if (leaf_p && !alloca_p && !block_arg_func_p && !func->vararg_p && frame.stack_bytes == 8)
    frame = (struct jitdump_frame) {0};
  epilogue = gen_ctx->ret_at - jitdump_cfi_epilogue_bytes (JITDUMP_X86_64, &frame);
  _MIR_log_code (gen_ctx->ctx, func->name, func->call_addr, bytes, func->jret_p ? NULL : &frame);
}
