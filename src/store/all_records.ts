/** Reads lists of any length. */
import type { ListOptions, Store, VersionedRecord } from "./store.ts";

const PAGE_RECORDS = 1_000;

/** Yields all records of a kind, newest first, page by page. */
export async function* allRecords(
  store: Store,
  kind: string,
  options: Pick<ListOptions, "namespace" | "where">,
): AsyncGenerator<VersionedRecord> {
  let cursor: string | null | undefined;
  while (cursor !== null) {
    const page = await store.list(kind, {
      ...options,
      limit: PAGE_RECORDS,
      ...(cursor === undefined ? {} : { cursor }),
    });
    yield* page.records;
    cursor = page.next_cursor;
  }
}
