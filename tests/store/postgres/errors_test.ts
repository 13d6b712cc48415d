import { errorCode } from "../../../src/sdk/errors.ts";
import { ConflictError } from "../../../src/store/store.ts";
import { toStoreError } from "../../../src/store/postgres/errors.ts";
import { assertEquals } from "../../assert.ts";

const failure = (code?: string, message = "failed") => Object.assign(new Error(message), { code });

/** Codes that a later try meets again. */
const PERMANENT = ["42P01", "42501", "22P02", "23505", "3D000", "28P01", "XX000", "0A000", "25001"];
/** Codes of failures that may pass. */
const PASSING = [
  ...["08006", "08P01", "57P01", "57P03", "57014", "53300", "53400", "40001", "40P01"],
  ...[
    "ECONNRESET",
    "ECONNREFUSED",
    "EPIPE",
    "EBADF",
    "ETIMEDOUT",
    "ENOTFOUND",
    "ERR_TLS_CERT_ALTNAME_INVALID",
  ],
];
const FULL = ["53100", "53200", "25006"];

Deno.test("toStoreError() gives a lasting failure an SQLSTATE only, and waits for all else", () => {
  const codes = (all: readonly string[]) => all.map((code) => [code, errorCode(toStoreError(failure(code)))]);
  const all_of = (all: readonly string[], code: string) => all.map((one) => [one, code]);
  assertEquals(codes(PERMANENT), all_of(PERMANENT, "internal"));
  assertEquals(codes(PASSING), all_of(PASSING, "overloaded"));
  assertEquals(codes(FULL), all_of(FULL, "storage_full"));
});

Deno.test("toStoreError() waits after an error without a code, whatever its message", () => {
  const messages = [
    "Connection terminated unexpectedly",
    "Client was closed and is not queryable",
    "read error",
    "",
  ];
  for (const message of messages) {
    assertEquals(errorCode(toStoreError(failure(undefined, message))), "overloaded");
  }
  const conflict = new ConflictError("x");
  assertEquals(toStoreError(conflict), conflict);
});
