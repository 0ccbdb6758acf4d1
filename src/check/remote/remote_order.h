/* Order and call sites over machines: what order.c and call_sites.c ask for when it is not on this board.  remote.c calls. */
#ifndef ORIEL_CHECK_REMOTE_REMOTE_ORDER_H
#define ORIEL_CHECK_REMOTE_REMOTE_ORDER_H

void oriel_check_remote_order_span(void);

#endif
