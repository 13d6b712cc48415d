/** Converts a grant into the permissions of a Deno worker. */
import { PERMISSION_KINDS, type PermissionKind } from "../../sdk/plan.ts";

/** Permissions of a guest, with a value for every kind: `false`, a list, or `true`. */
export type GuestGrant = Readonly<Record<PermissionKind, boolean | readonly string[]>>;

/**
 * Returns a grant with a value for every kind. In Deno's options `undefined`, `null`, `"inherit"` and inherited properties mean
 * "all permissions", so the object is rebuilt from own properties. An empty list becomes `false`.
 */
export function guestGrant(permissions: Readonly<Partial<GuestGrant>> | undefined): GuestGrant {
  const grant = Object.create(null) as Record<PermissionKind, boolean | readonly string[]>;
  for (const kind of PERMISSION_KINDS) {
    const value = permissions && Object.hasOwn(permissions, kind) ? permissions[kind] : undefined;
    const list = Array.isArray(value)
      ? value.filter((entry) => typeof entry === "string" && entry !== "")
      : [];
    grant[kind] = value === true ? true : list.length > 0 ? list : false;
  }
  return { ...grant };
}

/** Returns a text that identifies a grant of {@link guestGrant}. */
export function grantKey(grant: GuestGrant): string {
  return JSON.stringify(PERMISSION_KINDS.map((kind) => grant[kind]));
}
