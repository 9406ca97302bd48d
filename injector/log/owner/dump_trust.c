/* See dump_trust.h. */
#include "injector/log/owner/dump_trust.h"

#include "injector/recording/host/live_process.h"
#include "injector/recording/host/trusted_owner.h"

enum dump_trust dump_trust_of(const struct dump_origin *origin, const struct process_life *life,
                              const struct perf_map *map, const struct jit_dump *dump,
                              enum file_identity identity)
{
    struct live_process live;
    if (dump_origin_is_proven(origin, map, dump) ||
        owner_is_trusted(dump->owner_uid, origin->recording_owner))
        return DUMP_TRUSTED;
    bool own = identity != FILE_OTHER && dump_place_lives(origin->records, life, &live) &&
               live.uid == dump->owner_uid;
    return own ? DUMP_OF_PROCESS : DUMP_UNTRUSTED;
}
