/** A permissions block with every name in it: how grants and ceilings are compared. */
import type { Permissions } from "../sdk/contracts.ts";

/** A permissions block with all permission names. */
export type FullPermissions = Required<Permissions>;

/** Returns a new permissions block that grants nothing. */
export function noPermissions(): FullPermissions {
  return { net: [], read: [], write: [], env: [], run: [], sys: [], ffi: false, import: [] };
}
