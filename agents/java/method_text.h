/* The names of Java's methods, from the signatures of class files, as HotSpot's perf map has them:
 *
 *     Ljava/util/HashMap;  hash  (Ljava/lang/Object;)I
 *     int java.util.HashMap.hash(java.lang.Object)
 *
 * A hidden class has an address in its name, which differs between runs, and is left out:
 *
 *     LApp$$Lambda.0x00007f3c01003200;  run  ()V       (17 and older: App$$Lambda$14)
 *     void App$$Lambda.run()
 */
#ifndef PERFJIT_METHOD_TEXT_H
#define PERFJIT_METHOD_TEXT_H

#include <stdbool.h>

/* The name of METHOD, to be freed; NULL without memory, or if a signature is none.  Short:
 * "HashMap.hash". */
char *method_text(const char *class_signature, const char *method, const char *signature,
                  bool is_short);

/* The path of a class's source file, "java/util/HashMap.java", from the class's signature and the
 * file's name; to be freed.  NULL without memory. */
char *source_path(const char *class_signature, const char *file);

#endif
