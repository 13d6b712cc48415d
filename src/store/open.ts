/** Names of stores, and opening them. Each kind is loaded when it is opened. */
import type { Maintenance, Store } from "./store.ts";

/** A store that outlives its process. */
export type StoreName =
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string };

/** Options of {@link openStore}. */
export interface StoreOptions {
  /**
   * Whether to refuse a damaged SQLite file, which is read for that, and a database whose tables lack their
   * constraints. Default: false.
   */
  check?: boolean;
  /** Most connections to Postgres, besides two that listen and show that the server lives. Default: 10. */
  connections?: number;
  /** Whether statements have names; false for a pooler of Postgres that knows none. Default: true. */
  named_statements?: boolean;
}

/** Returns the store that a text names; null for any other text. */
export function parseStoreName(text: string): StoreName | null {
  if (text.startsWith("sqlite:") && text.length > "sqlite:".length) {
    return { kind: "sqlite", path: text.slice("sqlite:".length) };
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
 * @param store `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/DATABASE`.
 * @throws {TypeError} when the text names no store.
 * @throws {Error} when it cannot be opened: the error of the file system or the database.
 */
export async function openStore(
  store: string | StoreName,
  options: StoreOptions = {},
): Promise<Store> {
  const name = typeof store === "string" ? parseStoreName(store) : store;
  if (name === null) {
    throw new TypeError(
      "Cannot open the store: must be sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE",
    );
  }
  if (name.kind === "postgres") {
    const { openPostgresStore } = await import("./postgres/postgres_store.ts");
    return await openPostgresStore(name.url, options);
  }
  const { openSqliteStore } = await import("./sqlite/sqlite_store.ts");
  return await openSqliteStore(name.path, options);
}

/** Opens a store for maintenance; creates its tables, or brings them to this version. */
export async function openMaintenance(name: StoreName): Promise<Maintenance> {
  if (name.kind === "postgres") {
    const { openPostgresMaintenance } = await import("./postgres/maintenance.ts");
    return await openPostgresMaintenance(name.url);
  }
  const { openSqliteMaintenance } = await import("./sqlite/maintenance.ts");
  return await openSqliteMaintenance(name.path);
}

/** Returns a store for a message: without user and password. */
export function describeStore(name: StoreName): string {
  if (name.kind === "sqlite") return `sqlite:${name.path}`;
  const { hostname, port, pathname } = new URL(name.url);
  return `postgres://${hostname}${port && `:${port}`}${pathname}`;
}
