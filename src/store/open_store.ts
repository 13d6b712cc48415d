/** Opens the store that the setting `store` names. The code of a store is loaded when it is used. */
import type { Maintenance, Store } from "./store.ts";

/** A store that outlives its process. */
export type StoreName =
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string }
  /** Deno KV. `path` is a file or a URL; null: the attached database, else the default file of Deno. */
  | { readonly kind: "kv"; readonly path: string | null };

/** Returns the store that a text names; null for any other text. */
export function parseStoreName(text: string): StoreName | null {
  if (text.startsWith("sqlite:") && text.length > "sqlite:".length) {
    return { kind: "sqlite", path: text.slice("sqlite:".length) };
  }
  if (text === "kv") return { kind: "kv", path: null };
  if (text.startsWith("kv:") && text.length > "kv:".length) {
    return { kind: "kv", path: text.slice("kv:".length) };
  }
  if (/^postgres(ql)?:\/\/[^/]/.test(text) && URL.canParse(text)) return { kind: "postgres", url: text };
  return null;
}

/**
 * Opens a store; a SQLite file and the tables of a database are created if they do not exist.
 *
 * ```ts
 * import { createPreamp, openStore } from "preamp/server";
 *
 * const file = await Deno.makeTempFile();
 * await Deno.remove(file);
 * const preamp = createPreamp({ store: await openStore(`sqlite:${file}`) });
 * await preamp.close(); // closes the store too
 * ```
 *
 * @param store `sqlite:PATH`, `postgres://USER:PASSWORD@HOST/DATABASE`, `kv`, `kv:PATH` or `kv:https://URL`.
 * @throws {TypeError} when the text names no store.
 * @throws {Error} when it cannot be opened: the error of the file system or the database.
 */
export async function openStore(store: string | StoreName): Promise<Store> {
  const name = typeof store === "string" ? parseStoreName(store) : store;
  if (name === null) {
    throw new TypeError(
      "Cannot open the store: must be sqlite:PATH, postgres://USER:PASSWORD@HOST/DATABASE, kv or kv:PATH",
    );
  }
  if (name.kind === "postgres") {
    const { openPostgresStore } = await import("./postgres/postgres_store.ts");
    return await openPostgresStore(name.url);
  }
  if (name.kind === "kv") {
    const { openKvStore } = await import("./kv/kv_store.ts");
    return await openKvStore(name.path);
  }
  const { openSqliteStore } = await import("./sqlite/sqlite_store.ts");
  return await openSqliteStore(name.path);
}

/** Opens a store for maintenance; creates its tables, or brings them to this version. */
export async function openMaintenance(name: StoreName): Promise<Maintenance> {
  if (name.kind === "postgres") {
    const { openPostgresMaintenance } = await import("./postgres/database.ts");
    return await openPostgresMaintenance(name.url);
  }
  if (name.kind === "kv") {
    const { openKvMaintenance } = await import("./kv/maintenance.ts");
    return await openKvMaintenance(name.path);
  }
  const { openSqliteMaintenance } = await import("./sqlite/sqlite_store.ts");
  return await openSqliteMaintenance(name.path);
}

/** Returns a store for a message: without user and password. */
export function describeStore(name: StoreName): string {
  if (name.kind === "sqlite") return `sqlite:${name.path}`;
  if (name.kind === "kv") return name.path === null ? "kv" : `kv:${name.path}`;
  const { hostname, port, pathname } = new URL(name.url);
  return `postgres://${hostname}${port && `:${port}`}${pathname}`;
}
