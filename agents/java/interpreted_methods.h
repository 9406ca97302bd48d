/* The methods that the interpreter may run, to the dump: all that classes have with code.
 *
 * A class is told of before its code first runs (ClassPrepare); those that are there already are
 * gone through once.  A class that is redefined has other methods, which nobody tells of: they are
 * looked for.  The old ones may run on.  A method that is freed is not told of: one that has its
 * memory later is. */
#ifndef PERFJIT_INTERPRETED_METHODS_H
#define PERFJIT_INTERPRETED_METHODS_H

#include "agents/java/interpreter_frames.h"
#include "agents/java/watched_methods.h"
#include "jitdump/jitdump.h"

struct interpreted_methods {
    jvmtiEnv *jvmti;
    struct jitdump *dump;
    const struct vm_structs *structs;
    struct watched_methods *watched;
    bool short_names, no_lines;
};

/* Log all methods of CLASS, which is prepared; else none. */
void interpreted_methods_add(const struct interpreted_methods *methods, jclass class);

/* Log those of all classes.  GOES_ON is asked at each. */
void interpreted_methods_add_all(const struct interpreted_methods *methods, JNIEnv *jni,
                                 bool (*goes_on)(void));

/* Log those of classes that have been redefined, as far as they are found now: all within a few
 * calls.  Returns whether there were any. */
bool interpreted_methods_add_redefined(const struct interpreted_methods *methods, JNIEnv *jni);

/* Log the methods that CLASS, which is known, has by now. */
void interpreted_methods_add_again(const struct interpreted_methods *methods, jclass class);

/* Log the old methods of redefined classes that some thread is in, as long as GOES_ON.  False: one
 * of the classes was just being redefined, so ask again. */
bool interpreted_methods_add_old(const struct interpreted_methods *methods, JNIEnv *jni,
                                 bool (*goes_on)(void));

#endif
