/** Maintenance of lasting stores, for `preamp store check | migrate | vacuum`. */
import type { StoreName } from "./open_store.ts";

/** What a store holds. */
export interface StoreState {
  /** Damage that was found; empty for a sound store. */
  problems: string[];
  /** Version of the tables. */
  version: number;
  /** Numbers of rows, expired ones included. */
  records: number;
  logs: number;
  entries: number;
  /** Size on disk. */
  bytes: number;
}

/** A store that is open for maintenance. */
export interface Maintenance {
  /** Version of the tables before they were opened; 0: there were none. */
  readonly opened_version: number;
  /** Checks the store and counts its rows; reads everything. */
  state(): Promise<StoreState>;
  /** Deletes rows that expired before `now_ms` (milliseconds since the epoch) and returns their space to the disk. */
  vacuum(now_ms: number): Promise<void>;
  close(): Promise<void>;
}

/** Opens a store for maintenance; creates its tables, or brings them to this version. */
export async function openMaintenance(name: StoreName): Promise<Maintenance> {
  if (name.kind === "postgres") {
    const { openPostgresMaintenance } = await import("./postgres/maintenance.ts");
    return await openPostgresMaintenance(name.url);
  }
  if (name.kind === "kv") {
    const { openKvMaintenance } = await import("./kv/maintenance.ts");
    return await openKvMaintenance(name.path);
  }
  const { openSqliteMaintenance } = await import("./sqlite/maintenance.ts");
  return await openSqliteMaintenance(name.path);
}
