/** A permissions block with every name in it: how grants and ceilings are compared. */
import type { Permissions } from "../sdk/contracts.ts";

/** A permissions block with every name in it. */
export type FullPermissions = Required<Permissions>;

/** Returns a permissions block that grants nothing, a fresh copy. */
export function noPermissions(): FullPermissions {
  return { net: [], read: [], write: [], env: [], run: [], sys: [], ffi: false, import: [] };
}
