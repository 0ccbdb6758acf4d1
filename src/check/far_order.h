/* Order and call sites over machines: what order.c and sites.c ask for when it is not on this board.  far.c calls. */
#ifndef ORIEL_CHECK_FAR_ORDER_H
#define ORIEL_CHECK_FAR_ORDER_H

void oriel_far_order_span(void);

#endif
