/**
 * Cursors of lists: the position of a page's last item, so that items added or deleted meanwhile do not shift
 * the next page.
 */
import { PreampError } from "../sdk/errors.ts";

/** A position in a list ordered by age, newest first. */
export interface CursorPosition {
  /** Milliseconds since the epoch. */
  readonly created_ms: number;
  /** Sequence number of the record; distinguishes records created in the same millisecond. */
  readonly order: number;
}

/** Encodes a position as an opaque cursor. */
export function encodeCursor({ created_ms, order }: CursorPosition): string {
  return `${created_ms.toString(36)}-${order.toString(36)}`;
}

/** Decodes a cursor. @throws {PreampError} `request_invalid` when it was not made by {@link encodeCursor}. */
export function decodeCursor(cursor: string): CursorPosition {
  const [first = "", second = "", ...rest] = cursor.split("-");
  const position = { created_ms: parseInt(first, 36), order: parseInt(second, 36) };
  if (rest.length > 0 || encodeCursor(position) !== cursor) {
    throw new PreampError("request_invalid", "Cannot read the cursor: must be the next_cursor of a page");
  }
  return position;
}

/** Orders positions newest first: negative when `a` comes before `b`. */
export function comparePositions(a: CursorPosition, b: CursorPosition): number {
  return b.created_ms - a.created_ms || b.order - a.order;
}
