package auth

// SetCompare takes the place of bcrypt, so that tests can count and hold checks.
func (a *Authenticator) SetCompare(f func(hash, password []byte) error) { a.passwords.compare = f }

// SetSlots lets n checks run at the same time.
func (a *Authenticator) SetSlots(n int) { a.passwords.slots = make(chan struct{}, n) }

// ParseUsers names the users that a users file has.
func ParseUsers(b []byte) ([]User, error) {
	accounts, err := parseUsers(b)
	var users []User
	for _, a := range accounts {
		users = append(users, a.user)
	}
	return users, err
}

// HashOfDecoy is what stands in for the hash of a user that does not exist.
func HashOfDecoy(cost int) []byte { return decoy(cost).hash }
