/** What differs on a host that starts the program as Deno Deploy does. */
import { parseStoreName, type StoreName } from "../store/open_store.ts";
import { UsageError } from "./arguments.ts";
import type { Settings } from "./settings.ts";
import type { Io, Output } from "./terminal/io.ts";

/** Variables of a host that makes `deno run` serve, and of Deno Deploy. Applications may not set variables of these names there. */
const HOST_VARIABLES = ["DENO_AUTO_SERVE", "DENO_DEPLOY"];

/** Variables of a process with a database of Deno KV as the default one. */
const KV_VARIABLES = ["DENO_KV_DEFAULT_PATH", "DENO_KV_REQUIRES_DISTRIBUTED_DATABASE"];

/** Returns whether the host chose the address, and may stop the process between requests. */
export function isHosted({ env }: Pick<Io, "env">): boolean {
  return HOST_VARIABLES.some((name) => (env(name) ?? "") !== "");
}

/**
 * Returns the store of a hosted server. `auto` is the database of `DATABASE_URL`, else an attached Deno KV, else memory: the
 * disk of the host does not last.
 *
 * @throws {UsageError} for a `DATABASE_URL` that is no URL of Postgres.
 */
export function hostedStore(
  { store }: Pick<Settings, "store">,
  { env }: Pick<Io, "env">,
): StoreName | "memory" {
  if (store !== "auto") return store;
  const url = env("DATABASE_URL") ?? "";
  if (url !== "") {
    const name = parseStoreName(url);
    if (name?.kind === "postgres") return name;
    throw new UsageError("Cannot use DATABASE_URL: must be postgres://USER:PASSWORD@HOST/DATABASE");
  }
  const has_kv = typeof Deno.openKv === "function" && KV_VARIABLES.some((name) => (env(name) ?? "") !== "");
  return has_kv ? { kind: "kv", path: null } : "memory";
}

/**
 * Returns the console as an output of lines: Deno Deploy keeps what is written to the console. The methods are those of now, so
 * that a log which receives the console's output later does not receive its own lines.
 */
export function consoleOutput(): Output {
  const write = console.log.bind(console);
  return {
    terminal: false,
    color: false,
    columns: () => 80,
    write(text) {
      for (const line of text.split("\n")) if (line !== "") write(line);
    },
  };
}
