/* What the numbers of a profile lack where threads waited, in spans, or where several threads ran
 * at a time. */
#ifndef PERFJIT_WAITS_TEXT_H
#define PERFJIT_WAITS_TEXT_H

#include "injector/profile/profile_choice.h"

/* Sentence number INDEX, from 0 on, about the waits of PROFILE (WAITS: they are shown) and about
 * the weights of CHOICE, into TEXT of SIZE bytes.  Returns false after the last. */
bool waits_text(const struct call_profile *profile, const struct profile_choice *choice, bool waits,
                size_t index, char *text, size_t size);

#endif
