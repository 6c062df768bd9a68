// Package auth tells who asks, and whether they are an administrator.
//
// There are three ways to be known:
//
//   - Nothing is configured: everybody is anonymous and may do everything. [Authenticator.Enabled] is false.
//   - A users file: HTTP Basic credentials, checked against bcrypt hashes.
//   - A trusted proxy: it has checked who asks, and names the user and the roles in two headers.
//
// Once one of the last two is configured, nobody is anonymous any more: a request without a user is refused.
//
// # The users file
//
// It is read once, at the start. A user needs a hash, and may have roles:
//
//	ann:
//	  hash: "$2y$12$..."
//	  roles: [admin]
//	bob:
//	  hash: "$2y$12$..."
//	  roles: [analyst, oncall]
//
// An internal_users.yml of OpenSearch can be used as it is: backend_roles and opendistro_security_roles count as roles too,
// and what has no meaning here (_meta, reserved, hidden, static, description, attributes) is passed over. Every other key is
// an error.
//
// # Passwords
//
// A check by bcrypt costs a good part of a second of processor time, on purpose. So a password that was right is remembered
// for five minutes, as a digest under a key that exists in this process only; checks that run at the same time are bounded
// so that they leave processors to others; and a user that does not exist costs as much as a wrong password, so that the
// time of an answer does not tell which names exist.
//
// # The proxy
//
// The headers are believed only from the listed addresses, by the address of the connection itself; other headers about
// where a request came from count for nothing. From any other address a request that carries one of the headers is refused,
// rather than treated as if it had none: it is either an attack or a proxy that was forgotten in the list. A listed proxy
// that sends no user header is treated like any other client: Basic credentials if there is a users file, else it is
// refused. If it sends both, its user header counts. A user that the proxy names has the roles that the proxy names, none
// from the users file.
package auth
