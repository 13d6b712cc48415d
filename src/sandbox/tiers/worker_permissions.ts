/** A grant in the form that Deno takes as the permissions of a worker. Pure. */
import { PERMISSION_KINDS, type PermissionKind } from "../../sdk/plan.ts";

/** What a guest may do: every kind said, `false` or a list or `true`. */
export type GuestGrant = Readonly<Record<PermissionKind, boolean | readonly string[]>>;

/**
 * Returns the grant with every kind said. `undefined`, `null`, `"inherit"` and what is inherited from a prototype mean everything
 * in Deno's options: the object is made afresh, of own properties only (modules.md, Isolation tiers). An empty list is `false`.
 */
export function guestGrant(permissions: Readonly<Partial<GuestGrant>> | undefined): GuestGrant {
  const grant = Object.create(null) as Record<PermissionKind, boolean | readonly string[]>;
  for (const kind of PERMISSION_KINDS) {
    const given = permissions && Object.hasOwn(permissions, kind) ? permissions[kind] : undefined;
    const list = Array.isArray(given) ? given.filter((one) => typeof one === "string" && one !== "") : [];
    grant[kind] = given === true ? true : list.length > 0 ? list : false;
  }
  return { ...grant };
}

/** Returns a text that is the same for the same grant, as {@link guestGrant} returns it, and for no other. */
export function grantKey(grant: GuestGrant): string {
  return JSON.stringify(PERMISSION_KINDS.map((kind) => grant[kind]));
}
