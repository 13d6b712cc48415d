/** Errors of Postgres, of the network and of the package `pg`: which of them may pass. */
import { errorMessage, PreampError } from "../../sdk/errors.ts";
import { ConflictError } from "../store.ts";

/**
 * Codes of Postgres for a transaction that may succeed when it is repeated: serialization failure, deadlock.
 */
export const RETRIED: ReadonlySet<string> = new Set(["40001", "40P01"]);
/** Codes of Postgres that mean that nothing can be written: disk full, out of memory, read-only database. */
const FULL: ReadonlySet<string> = new Set(["53100", "53200", "25006"]);
/**
 * SQLSTATE of a failure that a later try meets again. All others may pass: classes 08 (connection), 40
 * (transaction rolled back), 53 (resources) and 57 (operator), codes of the network such as `EPIPE`, and
 * errors without a code, which the package `pg` has for a connection that is lost.
 */
const PERMANENT = /^(?!E|08|40|53|57)[0-9A-Z]{5}$/;

/** Returns the code of an error of the database or the network; an empty text if it has none. */
export function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : "";
}

/**
 * Returns an error of the database as one of ours. Its message, which a failed run has too, is the code of
 * the database or the network, and has no address, value or password.
 */
export function toStoreError(error: unknown): unknown {
  if (error instanceof ConflictError) return error;
  const code = codeOf(error);
  const fact = code || errorMessage(error);
  const [name, message] = FULL.has(code)
    ? ["storage_full", "Cannot write to the store: the database is full or read-only"] as const
    : [
      PERMANENT.test(code) ? "internal" : "overloaded",
      `Cannot use the store: the database failed: ${fact}`,
    ] as const;
  return new PreampError(name, message, { cause: error });
}
