/** The part of the package `pg` that the store uses, with types: the package has none of its own. */
import pg from "pg";

/** How to connect. */
export interface ConnectionSettings {
  readonly connectionString: string;
  /** Milliseconds to wait for a connection. */
  readonly connectionTimeoutMillis: number;
  /** Name of the connection in the database's own lists. */
  readonly application_name: string;
}

/** A row of a result; its columns depend on the statement. */
// deno-lint-ignore no-explicit-any -- columns are converted where they are read
export type Row = Record<string, any>;

/** The value of a parameter. */
export type Value = string | number | null | readonly string[];

/** Runs statements, each in a transaction of its own unless one was begun. */
export interface Queryable {
  query(text: string, values?: readonly Value[]): Promise<{ rows: Row[] }>;
}

/** A connection out of a pool. */
export interface PooledClient extends Queryable {
  /** Returns the connection to the pool; with `broken` it is closed. */
  release(broken?: boolean): void;
}

/** Connections that are opened when they are needed. */
export interface Pool extends Queryable {
  connect(): Promise<PooledClient>;
  /** Called when an idle connection fails. */
  on(event: "error", handler: (error: Error) => void): void;
  end(): Promise<void>;
}

/** One connection. */
export interface Client extends Queryable {
  connect(): Promise<void>;
  on(event: "error" | "end", handler: () => void): void;
  on(event: "notification", handler: (message: { payload?: string }) => void): void;
  end(): Promise<void>;
}

/** Creates a pool of at most `max` connections; opens none yet. */
export function createPool(settings: ConnectionSettings & { readonly max: number }): Pool {
  return new pg.Pool(settings) as Pool; // the package has no types
}

/** Creates a connection; does not open it yet. */
export function createClient(settings: ConnectionSettings): Client {
  return new pg.Client(settings) as Client; // the package has no types
}
