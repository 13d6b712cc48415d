/** Cursors of lists: the position of the last item of a page, so that what is deleted or added meanwhile moves nobody. */
import { PreampError } from "../sdk/errors.ts";

/** A position in a list that is ordered by age, newest first. */
export interface CursorPosition {
  /** Milliseconds since the epoch. */
  readonly created_ms: number;
  /** Number of the record in the order of creation; tells apart what was created in the same millisecond. */
  readonly order: number;
}

/** Returns a position as a cursor: opaque to callers. */
export function encodeCursor({ created_ms, order }: CursorPosition): string {
  return `${created_ms.toString(36)}-${order.toString(36)}`;
}

/** Returns the position of a cursor. @throws {PreampError} `request_invalid` when it is none of ours. */
export function decodeCursor(cursor: string): CursorPosition {
  const [first = "", second = "", ...rest] = cursor.split("-");
  const position = { created_ms: parseInt(first, 36), order: parseInt(second, 36) };
  if (rest.length > 0 || encodeCursor(position) !== cursor) {
    throw new PreampError("request_invalid", "Cannot read the cursor: must be the next_cursor of a page");
  }
  return position;
}

/** Orders places newest first: negative when `a` comes before `b`. */
export function comparePositions(a: CursorPosition, b: CursorPosition): number {
  return b.created_ms - a.created_ms || b.order - a.order;
}
