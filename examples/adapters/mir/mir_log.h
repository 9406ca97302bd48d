/* MIR's code in Linux perf: what mir.c includes.  x86-64. */

static void log_init (MIR_context_t ctx) {
  if (jitdump_open (&ctx->dump, NULL) != 0) fprintf (stderr, "MIR: %s\n", jitdump_error (ctx->dump));
  ctx->cfi = jitdump_cfi_new (JITDUMP_X86_64);
}

static void log_finish (MIR_context_t ctx) {
  jitdump_cfi_free (ctx->cfi);
  jitdump_close (ctx->dump);
}

/* BYTES of CODE, before they first run.  Without a FRAME nothing but the name is told. */
void _MIR_log_code (MIR_context_t ctx, const char *name, const void *code, size_t bytes,
                    const struct jitdump_frame *frame) {
  struct jitdump_code record = JITDUMP_CODE_INIT;
  struct jitdump_unwind unwind;

  if (ctx->dump == NULL) return;
  record.name = name;
  record.code_addr = (uint64_t) (uintptr_t) code;
  record.code_size = bytes;
  record.bytes = code;
  jitdump_cfi_reset (ctx->cfi);
  jitdump_cfi_frame (ctx->cfi, frame);
  if (jitdump_cfi_finish (ctx->cfi, bytes, &unwind) == 0) record.unwind = &unwind;
  jitdump_add_code (ctx->dump, &record, NULL);
}
