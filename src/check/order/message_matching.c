/* Argument for the numbers of messages. MPI matches each message with the first posted receive that
 * fits, and messages of one envelope in the order of their sends (3.5). So the receives that get
 * messages of one envelope get them in the order in which the receives were posted:
 * M1: A receive that names its envelope gets its number when it is posted, if no open receive can
 *     get a message of that envelope.
 * M2: Otherwise it is open, as all receives with wildcards are. It stays open until its message is
 *     known and no earlier receive in the list can get that envelope: then it gets the next number.
 * M3: An open receive that completes while earlier receives may have got the same envelope takes
 *     the clocks of all numbers that it may have. A sender's clock only grows, so it takes too
 *     much, never too little.
 * M4: Where several threads post at once, or a receive was lost, the sender's whole clock is taken.
 *
 * An entry under a key is freed when its number is given to a complete receive: each exactly once.
 */
#include "check/order/message_matching.h"

#include "check/order/order.h"

#include <stdlib.h>

enum { RANGE_MOST = 64 };

/* Sent messages of an envelope, and those that numbered receives received. */
struct envelope_count {
    uint32_t sent;
    uint32_t received;
};

static bool envelope_is_same(struct oriel_envelope a, struct oriel_envelope b)
{
    return a.peer == b.peer && a.tag == b.tag;
}

/* Returns NULL when memory is exhausted. */
static struct envelope_count *envelope_count_get(struct oriel_matching *matching,
                                                 struct oriel_envelope envelope)
{
    uint64_t key = (uint64_t)(uint32_t)envelope.peer << 32 | (uint32_t)envelope.tag;
    struct envelope_count *count = oriel_hash_table_find(&matching->counts, key);
    if (count != NULL)
        return count;
    count = calloc(1, sizeof *count);
    if (count != NULL && !oriel_hash_table_set_nolock(&matching->counts, key, count)) {
        free(count);
        count = NULL;
    }
    return count;
}

static void envelope_count_free(void *count, void *nothing)
{
    (void)nothing;
    free(count);
}

void oriel_matching_open(struct oriel_matching *matching, uint64_t id, int32_t rank)
{
    *matching = (struct oriel_matching){.id = id, .rank = rank, .counts = ORIEL_HASH_TABLE_INIT};
    pthread_mutex_init(&matching->mutex, NULL);
}

static void receives_free(struct oriel_receiving *receiving)
{
    while (receiving != NULL) {
        struct oriel_receiving *next = receiving->next;
        free(receiving);
        receiving = next;
    }
}

void oriel_matching_close(struct oriel_matching *matching)
{
    oriel_hash_table_visit(&matching->counts, envelope_count_free, NULL);
    oriel_hash_table_close(&matching->counts);
    receives_free(matching->numbered);
    receives_free(matching->open_first);
    pthread_mutex_destroy(&matching->mutex);
}

static struct oriel_key message_key(const struct oriel_matching *matching, int32_t source,
                                    int32_t destination, int32_t tag, uint32_t number)
{
    return (struct oriel_key){{ORIEL_ORDER_MESSAGE | oriel_order_home(destination), matching->id,
                               (uint64_t)(uint32_t)source << 32 | (uint32_t)destination,
                               (uint64_t)(uint32_t)tag << 32 | number}};
}

static struct oriel_key sent_key(const struct oriel_matching *matching, struct oriel_envelope to,
                                 uint32_t number)
{
    return message_key(matching, matching->rank, to.peer, to.tag, number);
}

static struct oriel_key received_key(const struct oriel_matching *matching,
                                     struct oriel_envelope from, uint32_t number)
{
    return message_key(matching, from.peer, matching->rank, from.tag, number);
}

/* --- sends --- */

/* M4: this message and all messages numbered since may overtake a thread that is still posting the
 *     same envelope. Each of them then arrives one number earlier, so the entries of these numbers
 *     are given this clock too. */
static void overtaken_sends_give(struct oriel_matching *matching,
                                 const struct oriel_sending *sending)
{
    uint32_t most = 0;
    for (const struct oriel_sending *other = matching->sending; other != NULL; other = other->next)
        if (envelope_is_same(other->envelope, sending->envelope) &&
            sending->number - other->number > most)
            most = sending->number - other->number;
    if (most >= RANGE_MOST)
        oriel_order_set_doubtful();
    for (uint32_t i = 1; i <= most && most < RANGE_MOST; i++) {
        struct oriel_key key = sent_key(matching, sending->envelope, sending->number - i);
        oriel_order_give_again(&key);
    }
}

struct oriel_sending *oriel_send_begin(struct oriel_matching *matching, struct oriel_envelope to)
{
    struct oriel_sending *sending =
        malloc(sizeof *sending); /* not in the caller's frame: the call may be left by a jump */
    pthread_mutex_lock(&matching->mutex);
    struct envelope_count *count = sending == NULL ? NULL : envelope_count_get(matching, to);
    if (count == NULL) {
        oriel_order_set_doubtful();
        free(sending);
        sending = NULL;
    } else {
        *sending = (struct oriel_sending){
            .envelope = to, .number = count->sent++, .next = matching->sending};
        overtaken_sends_give(matching, sending);
        struct oriel_key key = sent_key(matching, to, sending->number);
        oriel_order_give(&key, 1);
        matching->sending = sending;
    }
    pthread_mutex_unlock(&matching->mutex);
    return sending;
}

void oriel_send_end(struct oriel_matching *matching, struct oriel_sending *sending, bool failed)
{
    if (sending == NULL)
        return;
    pthread_mutex_lock(&matching->mutex);
    struct oriel_sending **link = &matching->sending;
    while (*link != sending)
        link = &(*link)->next;
    *link = sending->next;
    if (failed) {
        struct envelope_count *count = envelope_count_get(matching, sending->envelope);
        if (count != NULL && count->sent == sending->number + 1) {
            struct oriel_key key = sent_key(matching, sending->envelope, sending->number);
            oriel_order_forget(&key);
            count->sent--;
        } else {
            oriel_order_set_doubtful();
        }
    }
    pthread_mutex_unlock(&matching->mutex);
    free(sending);
}

/* --- lists of receives --- */

static void open_append(struct oriel_matching *matching, struct oriel_receiving *receiving)
{
    receiving->before = matching->open_last;
    receiving->next = NULL;
    if (matching->open_last != NULL)
        matching->open_last->next = receiving;
    else
        matching->open_first = receiving;
    matching->open_last = receiving;
}

static void open_unlink(struct oriel_matching *matching, struct oriel_receiving *receiving)
{
    if (receiving->before != NULL)
        receiving->before->next = receiving->next;
    else
        matching->open_first = receiving->next;
    if (receiving->next != NULL)
        receiving->next->before = receiving->before;
    else
        matching->open_last = receiving->before;
}

static void numbered_add(struct oriel_matching *matching, struct oriel_receiving *receiving)
{
    receiving->before = NULL;
    receiving->next = matching->numbered;
    if (matching->numbered != NULL)
        matching->numbered->before = receiving;
    matching->numbered = receiving;
}

static void numbered_unlink(struct oriel_matching *matching, struct oriel_receiving *receiving)
{
    if (receiving->before != NULL)
        receiving->before->next = receiving->next;
    else
        matching->numbered = receiving->next;
    if (receiving->next != NULL)
        receiving->next->before = receiving->before;
}

/* Whether a message of the envelope matches what a receive wants. */
static bool envelope_matches(struct oriel_envelope wanted, struct oriel_envelope envelope)
{
    return (wanted.peer == ORIEL_ANY || wanted.peer == envelope.peer) &&
           (wanted.tag == ORIEL_ANY || wanted.tag == envelope.tag);
}

/* Whether some message can match both. */
static bool envelopes_overlap(struct oriel_envelope a, struct oriel_envelope b)
{
    return (a.peer == ORIEL_ANY || b.peer == ORIEL_ANY || a.peer == b.peer) &&
           (a.tag == ORIEL_ANY || b.tag == ORIEL_ANY || a.tag == b.tag);
}

static bool envelope_is_named(struct oriel_envelope wanted)
{
    return wanted.peer != ORIEL_ANY && wanted.tag != ORIEL_ANY;
}

/* Whether an open receive before limit (NULL: any open one) may get or have got a message of the
 * envelope. */
static bool earlier_open_may_get(const struct oriel_matching *matching,
                                 const struct oriel_receiving *limit,
                                 struct oriel_envelope envelope)
{
    for (const struct oriel_receiving *open = matching->open_first; open != limit;
         open = open->next)
        if (open->state == ORIEL_RECEIVE_GOT ? envelope_is_same(open->got, envelope)
                                             : envelope_matches(open->wanted, envelope))
            return true;
    return false;
}

/* --- taking clocks --- */

static void number_take(struct oriel_matching *matching, struct oriel_envelope from,
                        uint32_t number, bool uncertain)
{
    struct oriel_key key = received_key(matching, from, number);
    if (!oriel_order_take(&key) || uncertain || oriel_order_is_doubtful())
        oriel_order_take_rank(from.peer);
}

/* M3: takes the clocks of first and of up to more numbers after it. */
static void numbers_look(struct oriel_matching *matching, struct oriel_envelope from,
                         uint32_t first, uint32_t more, bool uncertain)
{
    bool any = false;
    for (uint32_t i = 0; i <= more && more < RANGE_MOST; i++) {
        struct oriel_key key = received_key(matching, from, first + i);
        any = oriel_order_peek(&key) || any;
    }
    if (!any || uncertain || oriel_order_is_doubtful())
        oriel_order_take_rank(from.peer);
}

/* Takes the clocks of all numbers that a message of the envelope may have, if it matches after the
 * open receives before limit. */
static void later_numbers_look(struct oriel_matching *matching, const struct oriel_receiving *limit,
                               struct oriel_envelope from, bool uncertain)
{
    uint32_t more = 0;
    struct envelope_count *count = envelope_count_get(matching, from);
    for (const struct oriel_receiving *open = matching->open_first; open != limit;
         open = open->next)
        more += open->state == ORIEL_RECEIVE_GOT ? envelope_is_same(open->got, from)
                                                 : envelope_matches(open->wanted, from);
    numbers_look(matching, from, count == NULL ? 0 : count->received, more,
                 uncertain || count == NULL);
}

/* M2: numbers every receive whose number is known by now. */
static void open_receives_number(struct oriel_matching *matching)
{
    for (struct oriel_receiving *open = matching->open_first, *next; open != NULL; open = next) {
        next = open->next;
        bool got = open->state == ORIEL_RECEIVE_GOT;
        struct oriel_envelope envelope = got ? open->got : open->wanted;
        if ((!got && !envelope_is_named(open->wanted)) ||
            earlier_open_may_get(matching, open, envelope))
            continue;
        struct envelope_count *count = envelope_count_get(matching, envelope);
        if (count == NULL)
            continue;
        open_unlink(matching, open);
        open->number = count->received++;
        if (got) {
            struct oriel_key key = received_key(matching, envelope, open->number);
            oriel_order_forget(&key);
            free(open);
        } else {
            open->state = ORIEL_RECEIVE_NUMBERED;
            numbered_add(matching, open);
        }
    }
}

/* --- receives --- */

/* M4 */
static void concurrent_posts_mark(struct oriel_receiving *list, struct oriel_receiving *receiving)
{
    for (struct oriel_receiving *other = list; other != NULL; other = other->next)
        if (other->posting && envelopes_overlap(other->wanted, receiving->wanted))
            other->uncertain = receiving->uncertain = true;
}

struct oriel_receiving *oriel_receive_post(struct oriel_matching *matching,
                                           struct oriel_envelope from)
{
    struct oriel_receiving *receiving = calloc(1, sizeof *receiving);
    if (receiving == NULL)
        return NULL;
    receiving->wanted = from;
    receiving->posting = true;
    pthread_mutex_lock(&matching->mutex);
    if (matching->posting++ > 0) {
        concurrent_posts_mark(matching->numbered, receiving);
        concurrent_posts_mark(matching->open_first, receiving);
    }
    bool sure = envelope_is_named(from) && !earlier_open_may_get(matching, NULL, from);
    struct envelope_count *count = sure ? envelope_count_get(matching, from) : NULL;
    if (count != NULL) { /* M1 */
        receiving->state = ORIEL_RECEIVE_NUMBERED;
        receiving->number = count->received++;
        numbered_add(matching, receiving);
    } else {
        receiving->state = ORIEL_RECEIVE_OPEN;
        open_append(matching, receiving);
    }
    pthread_mutex_unlock(&matching->mutex);
    return receiving;
}

static void posting_end(struct oriel_matching *matching, struct oriel_receiving *receiving)
{
    matching->posting -= receiving->posting;
    receiving->posting = false;
}

void oriel_receive_posted(struct oriel_matching *matching, struct oriel_receiving *receiving)
{
    pthread_mutex_lock(&matching->mutex);
    posting_end(matching, receiving);
    pthread_mutex_unlock(&matching->mutex);
}

bool oriel_receive_is_numbered(struct oriel_matching *matching,
                               const struct oriel_receiving *receiving, uint32_t *number)
{
    pthread_mutex_lock(&matching->mutex);
    bool is_numbered = receiving->state == ORIEL_RECEIVE_NUMBERED;
    *number = receiving->number;
    pthread_mutex_unlock(&matching->mutex);
    return is_numbered;
}

void oriel_receive_got(struct oriel_matching *matching, struct oriel_receiving *receiving,
                       struct oriel_envelope from)
{
    pthread_mutex_lock(&matching->mutex);
    posting_end(matching, receiving);
    if (receiving->state == ORIEL_RECEIVE_NUMBERED) {
        numbered_unlink(matching, receiving);
        number_take(matching, from, receiving->number, receiving->uncertain);
        free(receiving);
    } else {
        receiving->state = ORIEL_RECEIVE_GOT;
        receiving->got = from;
        later_numbers_look(matching, receiving, from, receiving->uncertain);
        open_receives_number(matching);
    }
    pthread_mutex_unlock(&matching->mutex);
}

/* Moves the numbered receives that were posted after the cancelled one up by one. */
static void numbers_close_gap(struct oriel_matching *matching, const struct oriel_receiving *gone)
{
    struct envelope_count *count = envelope_count_get(matching, gone->wanted);
    for (struct oriel_receiving *other = matching->numbered; other != NULL; other = other->next)
        if (envelope_is_same(other->wanted, gone->wanted) && other->number > gone->number)
            other->number--;
    if (count != NULL)
        count->received--;
}

void oriel_receive_cancelled(struct oriel_matching *matching, struct oriel_receiving *receiving)
{
    pthread_mutex_lock(&matching->mutex);
    posting_end(matching, receiving);
    if (receiving->state == ORIEL_RECEIVE_NUMBERED) {
        numbered_unlink(matching, receiving);
        numbers_close_gap(matching, receiving);
    } else {
        open_unlink(matching, receiving);
        open_receives_number(matching);
    }
    free(receiving);
    pthread_mutex_unlock(&matching->mutex);
}

void oriel_receive_abandoned(struct oriel_matching *matching, struct oriel_receiving *receiving)
{
    pthread_mutex_lock(&matching->mutex);
    if (receiving->state == ORIEL_RECEIVE_NUMBERED) {
        numbered_unlink(matching, receiving);
        free(receiving);
    } /* an open receive stays: receives after it are never certain */
    pthread_mutex_unlock(&matching->mutex);
}

/* --- probes --- */

void oriel_message_seen(struct oriel_matching *matching, struct oriel_envelope from)
{
    pthread_mutex_lock(&matching->mutex);
    later_numbers_look(matching, NULL, from, false);
    pthread_mutex_unlock(&matching->mutex);
}
