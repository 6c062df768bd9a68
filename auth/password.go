package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/bcrypt"
)

const (
	// hashCost is the cost of hashes made here: 2^12 rounds, some 200 ms of a processor.
	hashCost = 12
	// maxPassword is how many bytes of a password bcrypt looks at.
	maxPassword = 72
	// rememberFor is how long a password that was right is not checked again.
	rememberFor = 5 * time.Minute
)

// HashPassword makes the bcrypt hash of a password for the users file.
func HashPassword(plain string) (string, error) {
	switch {
	case plain == "":
		return "", errors.New("the password is empty: choose one")
	case len(plain) > maxPassword:
		return "", fmt.Errorf("the password has %d bytes, of which bcrypt would look at the first %d only: choose a shorter one", len(plain), maxPassword)
	}
	h, err := bcrypt.GenerateFromPassword([]byte(plain), hashCost)
	return string(h), err
}

// account is a user of the users file. It is made with its first three fields, which do not change.
type account struct {
	user User
	hash []byte
	cost int

	// proof is of the password that was right last. One for each user is enough, and bounds what is kept.
	proof atomic.Pointer[proof]
}

// proof is that a password was right. The digest covers the user, the password and the hash that it was checked against.
type proof struct {
	digest digest
	until  time.Time
}

type digest [sha256.Size]byte

func (a *account) proven(d digest) bool {
	p := a.proof.Load()
	return p != nil && subtle.ConstantTimeCompare(p.digest[:], d[:]) == 1 && time.Now().Before(p.until)
}

// passwords checks passwords.
type passwords struct {
	accounts map[string]*account
	// decoys are checked in place of accounts that do not exist: for each account one of the same cost, so that the names
	// that do not exist cost what the names that do exist cost.
	decoys    []*account
	compare   func(hash, password []byte) error // bcrypt, the expensive step
	slots     chan struct{}                     // holds an element for each check under way
	digesters sync.Pool                         // of *digester
}

func newPasswords(accounts []*account) *passwords {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	p := &passwords{
		accounts: make(map[string]*account, len(accounts)),
		compare:  bcrypt.CompareHashAndPassword,
		// Half of the processors stay free for those whose password is known already.
		slots:     make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
		digesters: sync.Pool{New: func() any { return &digester{mac: hmac.New(sha256.New, key)} }},
	}
	for _, a := range accounts {
		p.accounts[a.user.Name] = a
		p.decoys = append(p.decoys, decoy(a.cost))
	}
	return p
}

// decoy makes an account that no known password opens.
func decoy(cost int) *account {
	return &account{hash: fmt.Appendf(nil, "$2a$%02d$decoydecoydecoydecoyde.nobodyknowsthepasswordofthis..", cost), cost: cost}
}

// check tells whose name and password these are.
func (p *passwords) check(ctx context.Context, name, password string) (User, error) {
	a, known := p.accounts[name]
	if !known {
		d := p.digest(name, "", nil)
		a = p.decoys[binary.NativeEndian.Uint64(d[:])%uint64(len(p.decoys))]
	}
	d := p.digest(name, password, a.hash)
	if a.proven(d) {
		return a.user, nil
	}

	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return User{}, fmt.Errorf("the password was not checked: %w", context.Cause(ctx))
	}
	if a.proven(d) { // by one of those that waited along with this one
		return a.user, nil
	}
	err := p.compare(a.hash, []byte(password))
	if err != nil || !known {
		return User{}, &UnauthenticatedError{Reason: "unknown user or wrong password"}
	}
	a.proof.Store(&proof{digest: d, until: time.Now().Add(rememberFor)})
	return a.user, nil
}

// digester makes digests under the key of this process.
type digester struct {
	mac hash.Hash
	buf []byte
}

// digest stands for its three arguments: no other three have the same one. No part of the password stays in memory: the
// buffer is cleared, and what the MAC keeps of its input is less than 64 bytes of the end, where name and hash are.
func (p *passwords) digest(name, password string, hash []byte) (d digest) {
	g := p.digesters.Get().(*digester)
	defer p.digesters.Put(g)
	b := slices.Grow(g.buf[:0], 16+len(password)+len(name)+len(hash))
	b = binary.BigEndian.AppendUint64(b, uint64(len(password)))
	b = append(b, password...)
	b = binary.BigEndian.AppendUint64(b, uint64(len(name)))
	b = append(b, name...)
	b = append(b, hash...)
	g.mac.Reset()
	g.mac.Write(b)
	g.mac.Sum(d[:0])
	clear(b)
	g.buf = b
	return d
}
