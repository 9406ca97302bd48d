/* The data in a page: what is written is put in zlib's format, in base64. */
#ifndef PERFJIT_PACKED_DATA_H
#define PERFJIT_PACKED_DATA_H

#include <stdio.h>

/* A stream that packs what is written to it, and puts that to STREAM.  fclose puts the rest, and a
 * line's end.  Returns NULL without memory. */
FILE *packed_data_open(FILE *stream);

#endif
